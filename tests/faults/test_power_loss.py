"""The power fails at any change on disk: what was acknowledged is there, whole, and the server starts."""

import re
from pathlib import Path

import pytest

from app.backup.archive import BackupUnusable
from tests.faults.power.cuts import Cut, Recording, all_survive, survives
from tests.faults.power.disk import Unsynced
from tests.faults.preloaded.server import DATA, cannot_preload

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(cannot_preload() is not None, reason=f"power loss is not tested: {cannot_preload()}"),
]

QUICK = 9  # `make faults-power` cuts 200 times

_LOST_ORIGINAL = "'status': 'failed'|original.* differ"
"""What is told of a lost original: its document fails if it was not indexed before the loss, else the files differ."""

FORGOTTEN = {
    "the bytes of originals": (rf"{DATA}/files/obj_.*|{DATA}/files/incoming/.*", _LOST_ORIGINAL),
    "the names of originals": (rf"{DATA}/files", _LOST_ORIGINAL),
    "the write-ahead log": (rf"{DATA}/footnote\.db-wal", "bears nothing"),
    "the name of the data dir": ("", "is lost"),
    "the bytes of the backup": (r".*footnote\.backup.*", "damaged"),
}
"""Paths below the recorded folder (itself is empty) whose fsync our code could forget, and what is then told."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording.made_in(tmp_path_factory.mktemp("recorded"))


def test_a5_a_power_loss_at_any_time_takes_nothing_that_was_acknowledged(recording: Recording, tmp_path: Path) -> None:
    all_survive(recording, recording.cuts(QUICK, seed=1), tmp_path)


def test_a5_a_new_data_dir_survives_a_power_loss_with_what_is_in_it(recording: Recording, tmp_path: Path) -> None:
    just_prepared = Cut(recording.changes_at(recording.notes[2]), Unsynced.DROPPED, seed=0)

    survives(recording, just_prepared, tmp_path / "left")


@pytest.mark.parametrize("forgotten", FORGOTTEN)
def test_a5_a_forgotten_fsync_is_found(recording: Recording, tmp_path: Path, forgotten: str) -> None:
    pattern, told = FORGOTTEN[forgotten]
    at_the_end = Cut(len(recording.events), Unsynced.DROPPED, seed=0)

    with pytest.raises((AssertionError, BackupUnusable), match=told):
        survives(recording, at_the_end, tmp_path / "left", unsynced=lambda path: bool(re.fullmatch(pattern, path)))
