"""The library that lets a disk fail does what the plan says: those calls fail, with that error, and no others."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.disk.faults import Calls, DiskFaults, Fault
from tests.faults.disk.server import SOURCE
from tests.faults.preloaded.server import built, cannot_preload
from tests.processes import running

pytestmark = pytest.mark.skipif(cannot_preload() is not None, reason=f"no disk fails: {cannot_preload()}")

HERE = Path(__file__).parents[2]
NOTHING = dict.fromkeys(Calls.__members__, 0)
Probe = Callable[[], dict[str, int]]


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[DiskFaults]:
    faults = DiskFaults(tmp_path / "plan")
    yield faults
    faults.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


@pytest.fixture
def probe(tmp_path: Path, folder: Path, faults: DiskFaults) -> Iterator[Probe]:
    """Makes a call of each kind in a process with the library, and returns the error of each."""
    library = built(SOURCE, tmp_path)
    variables = {"DISK_ROOT": str(folder), "DISK_PLAN": str(faults.path), "LD_PRELOAD": str(library)}
    command = [sys.executable, "-m", "tests.faults.disk.probe", str(folder)]
    environment = {**os.environ, **variables}
    with running(command, cwd=HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        lines, answers = process.stdin, process.stdout
        assert lines is not None
        assert answers is not None
        number = 0

        def ask() -> dict[str, int]:
            nonlocal number
            number += 1
            for name in ("standing", "moved", "surplus"):
                (folder / name).write_text("words")
            lines.write(f"new{number}\n".encode())
            lines.flush()
            errors: dict[str, int] = json.loads(answers.readline())
            return errors

        yield ask
        lines.close()
        assert process.wait(60) == 0


def test_a9_each_planned_call_fails_with_its_error_and_no_other(probe: Probe, faults: DiskFaults) -> None:
    assert probe() == NOTHING
    for call in Calls:
        for error in (errno.EIO, errno.EROFS):
            with faults.during(Fault(call, error)):
                assert probe() == {**NOTHING, str(call.name): error}
            assert faults.failed == 1, call
            assert probe() == NOTHING
            assert faults.failed == 1, "it ended"


def test_a9_only_files_that_fit_the_pattern_fail(probe: Probe, faults: DiskFaults) -> None:
    with faults.during(Fault(Calls.OPEN | Calls.MAKE | Calls.RENAME, errno.EIO, "@(new*-folder|moved-again)")):
        errors = probe()

    assert errors == {**NOTHING, "MAKE": errno.EIO, "RENAME": errno.EIO}
    assert faults.last.endswith("-folder")


def test_a9_so_many_calls_pass_and_so_many_fail(probe: Probe, faults: DiskFaults) -> None:
    with faults.during(Fault(Calls.SYNC, errno.EIO, passes=2, failures=3)):
        failed = [probe()["SYNC"] != 0 for _ in range(7)]

    assert failed == [False, False, True, True, True, False, False]
    assert faults.failed == 3


def test_a6_a_write_takes_the_room_that_is_left_and_the_next_one_fails(probe: Probe, faults: DiskFaults) -> None:
    with faults.during(Fault(Calls.WRITE, errno.ENOSPC, room=6)):  # each probe writes four bytes
        errors = [probe()["WRITE"] for _ in range(3)]

    assert errors == [0, 0, errno.ENOSPC]
    assert faults.failed == 2, "the second write was cut short"
