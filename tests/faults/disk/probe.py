"""`python -m tests.faults.disk.probe FOLDER`: makes a call of each kind for every line it reads, and prints the errors.

Each line is a name for new files; each answer is a JSON object with the errno of each kind of call, 0 for none.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path


def probed(folder: Path, standing: int, name: str) -> dict[str, int]:
    """One call of each kind in a folder, on an open file and on files of that name."""
    calls: dict[str, Callable[[], object]] = {
        "OPEN": lambda: os.close(os.open(folder / name, os.O_WRONLY | os.O_CREAT)),
        "WRITE": lambda: os.write(standing, b"word"),
        "SYNC": lambda: os.fsync(standing),
        "RENAME": lambda: (folder / "moved").rename(folder / "moved-again"),
        "REMOVE": (folder / "surplus").unlink,
        "MAKE": (folder / f"{name}-folder").mkdir,
        "CUT": lambda: os.ftruncate(standing, 0),
        "READ": lambda: os.close(os.open(folder / "standing", os.O_RDONLY)),
    }
    return {kind: _error_of(call) for kind, call in calls.items()}


def _error_of(call: Callable[[], object]) -> int:
    try:
        call()
    except OSError as error:
        return error.errno or -1
    return 0


if __name__ == "__main__":
    place = Path(sys.argv[1])
    opened = os.open(place / "standing", os.O_RDWR | os.O_CREAT)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(probed(place, opened, line.strip())) + "\n")
        sys.stdout.flush()
