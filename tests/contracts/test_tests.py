"""Tests wait for conditions, not for a time, and end the processes they start. Ruff's SLF001 forbids private access."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
STARTING = {"processes.py", "server.py"}
"""Both kill what they started, whatever became of the test; everything else starts processes by them."""


def places(pattern: str, folder: Path) -> list[str]:
    """Where a pattern stands in the Python files of a folder, as `path:line`."""
    return [
        f"{path.relative_to(TESTS)}:{number}"
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(pattern, line)
    ]


def test_the_page_is_never_waited_for_by_a_fixed_time():
    assert places(r"time\.sleep\(\d|wait_for_" + r"timeout\(", TESTS / "web") == []


def test_only_two_modules_start_processes_that_outlive_a_call():
    found = places(r"subprocess\.Pop" + r"en\(|create_subprocess_" + "exec", TESTS)

    assert [place for place in found if not place.startswith("bench/") and place.split(":")[0] not in STARTING] == []
