"""`python -m tests.faults.preloaded.served MODULE:FUNCTION DATA_DIR PORT`: serves what a function of ours builds."""

import importlib
import sys
from pathlib import Path

from tests.faults.forked import Application, serve


def named(name: str) -> Application:
    """The function of a name as `named_as` writes it."""
    module, function = name.split(":")
    found: Application = getattr(importlib.import_module(module), function)
    return found


def named_as(application: Application) -> str:
    """A function's module and name, for another process."""
    return f"{application.__module__}:{application.__qualname__}"


if __name__ == "__main__":
    serve(named(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
