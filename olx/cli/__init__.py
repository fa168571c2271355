"""The `olx` command: `main` reads the words, one module per command does the work.

A command is a module with `add(command)`, which declares its arguments, and `do(asked)`, which does
the work and returns the exit status. Work imports what it needs inside `do`, so that `olx --help`
answers at once.
"""

from olx.cli.main import main as main
