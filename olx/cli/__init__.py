"""The `olx` command: `main` reads its words, `commands` does the work."""

from olx.cli.main import main as main
