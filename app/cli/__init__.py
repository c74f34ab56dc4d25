"""The command line: `footnote`."""

from app.cli.main import main

__all__ = ["main"]
