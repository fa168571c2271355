"""`python -m olx.cli` is the `olx` command."""

import sys

from olx.cli.main import main

sys.exit(main())
