"""Keeps cases that failed once as small files, which are tried again each time.

A file is JSON: what was said of the case, and the case itself. It does not depend on the grammar that made it.
"""

import hashlib
import json
from pathlib import Path

from tests.fuzz.target import Case, Fault

FOLDER = Path(__file__).resolve().parent / "seeds"


def keep_seed(fault: Fault, *, folder: Path = FOLDER) -> Path:
    """Write the case to `folder/TARGET/DIGEST.json`; the same case always has the same file."""
    digest = hashlib.sha256(json.dumps(fault.case, sort_keys=True).encode()).hexdigest()[:12]
    path = folder / fault.target / f"{digest}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"said": fault.said, "case": fault.case}, indent=1) + "\n", encoding="utf-8")
    return path


def kept_seeds(target: str, *, folder: Path = FOLDER) -> dict[str, Case]:
    """The kept cases of a target by the names of their files."""
    found = {}
    for path in sorted((folder / target).glob("*.json")):
        found[path.name] = json.loads(path.read_text(encoding="utf-8"))["case"]
    return found


def kept_targets(*, folder: Path = FOLDER) -> set[str]:
    """The names of the targets that have seeds."""
    return {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
