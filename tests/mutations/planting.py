"""Plants bugs one by one: each must fail a test (mutation testing, by hand: DeMillo, Lipton, Sayward 1978).

Every bug is an exact replacement in a copy of the checkout, and the tests that should notice run there. They must pass
in the copy without it, and fail with it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

_ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("app", "generation", "ingestion", "migrations", "retrieval", "tests", "pyproject.toml")
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Bug:
    """`was` stands once in `file`; `becomes` is the bug. `tests` are run until the first of them fails."""

    name: str
    file: str
    was: str
    becomes: str
    tests: tuple[str, ...]


def check(bugs: tuple[Bug, ...], console: Console) -> dict[str, str]:
    """By bug, `caught` or what went wrong instead."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in _COPIED:
            source = _ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
            else:
                shutil.copy(source, copy / name)
        for bug in bugs:
            outcomes[bug.name] = _plant(copy, bug)
            console.print(f"{outcomes[bug.name]:10} {bug.name}")
    return outcomes


def _plant(copy: Path, bug: Bug) -> str:
    file = copy / bug.file
    good = file.read_text(encoding="utf-8")
    if good.count(bug.was) != 1:
        return "outdated"
    if _run(copy, bug.tests) != 0:
        return "not green"
    file.write_text(good.replace(bug.was, bug.becomes), encoding="utf-8")
    try:
        return "caught" if _run(copy, bug.tests) == 1 else "survived"
    finally:
        file.write_text(good, encoding="utf-8")


def _run(copy: Path, tests: tuple[str, ...]) -> int:
    """pytest's exit status: 0 all passed, 1 some failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    done = subprocess.run(
        command,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},  # also for the processes that tests start
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode


def main(bugs: tuple[Bug, ...], *, module: str, description: str | None) -> int:
    """The command `python -m MODULE`. Status 0 where every bug was caught."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--only", default="", help="a part of a bug's name")
    parser.add_argument("--out", type=Path, help="write the outcomes to this file")
    arguments = parser.parse_args()
    outcomes = check(tuple(bug for bug in bugs if arguments.only in bug.name), Console())
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    return 0 if outcomes and set(outcomes.values()) == {"caught"} else 1
