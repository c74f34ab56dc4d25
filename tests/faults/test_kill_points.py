"""kill -9 at named points of an ingestion, and at random moments: what was acknowledged is there, whole, once."""

from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from tests.faults.forked import KillPoint
from tests.faults.ingestion import killed_at, killed_at_random
from tests.faults.kill_points import POINTS

QUICK = POINTS[::3]  # `make faults-ingest` goes through all of them

pytestmark = pytest.mark.timeout(300)


def test_every_kill_point_names_an_existing_function() -> None:
    for point in POINTS:
        module, _, name = point.function.partition(":")
        assert callable(attrgetter(name)(import_module(module))), point


@pytest.mark.parametrize("point", QUICK, ids=str)
def test_a2_a_server_killed_at_any_point_goes_on_where_it_was(tmp_path: Path, point: KillPoint) -> None:
    killed_at(tmp_path, point)


def test_a2_a_server_killed_at_random_moments_holds_what_it_acknowledged(tmp_path: Path) -> None:
    operations: list[int] = []

    killed_at_random(tmp_path, kills=3, seed=1, report=lambda number, count, seconds: operations.append(count))

    assert len(operations) == 3
    assert sum(operations) > 0
