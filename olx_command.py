"""The `olx` command as a process.

Python turns Ctrl-C into an exception anywhere. While native code of JAX is on the stack, such an
exception may end in a segmentation fault, even in `import jax`. So a signal ends the process at
once, except where a run of the lab holds it to keep its jobs.
"""

import signal
import sys


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from olx.cli import main

    sys.exit(main())
