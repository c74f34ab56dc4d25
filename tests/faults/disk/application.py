"""The application that disks fail under: it counts everything, and logs as `footnote serve` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.server.state import State
from app.telemetry.logs import configure_logging
from tests.faults.metered import metered, scripted


@contextmanager
def logged(data_dir: Path) -> Iterator[State]:
    """As `metered`, with production's log lines and conversations that are stored.

    A token takes 10 ms, so that a disk can fail in the middle of an answer.
    """
    configure_logging(level="info", json=True)
    with metered(data_dir, engine=scripted(step_seconds=0.01), remembers=True) as state:
        yield state
