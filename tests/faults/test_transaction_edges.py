"""kill -9 right before and right after the commit of every kind of transaction: whole, once, and on the books."""

import random
from pathlib import Path

import pytest

from tests.faults.changes import CHANGES
from tests.faults.commits import ANY, Edge
from tests.faults.edges import Walk, plans

KILLS = 4  # in the quick form
LEAST_KINDS = 40
LEAST_EDGES = 200
_PARTS = 6


def sampled(seed: int) -> list[Edge | None]:
    """A plan for a few of the changes, at random commits of theirs."""
    chance = random.Random(seed)
    killed = set(chance.sample(range(len(CHANGES) - 2), KILLS))  # the last two would take what does not come to its end
    return [
        Edge(ANY, chance.randrange(1, 4), chance.choice(["before", "after"])) if number in killed else None
        for number in range(len(CHANGES))
    ]


def kinds_of(walk: Walk) -> set[str]:
    return {edge.kind for edges in walk.edges for edge in edges}


@pytest.mark.timeout(300)
def test_a13_killed_at_the_edge_of_a_transaction_a_change_happens_whole_and_once(tmp_path: Path) -> None:
    walk = Walk(tmp_path, sampled(seed=1))

    walk.run()

    assert len(walk.reached) == KILLS
    assert len(kinds_of(walk)) > LEAST_KINDS
    assert sum(map(len, walk.edges)) > LEAST_EDGES


@pytest.mark.exhaustive
@pytest.mark.lasting
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(_PARTS))
def test_a13_killed_at_each_edge_of_each_transaction_every_change_happens_whole_and_once(
    tmp_path: Path, part: int
) -> None:
    """The edges are those of a walk without kills; each is killed at once, in one of several walks."""
    (tmp_path / "whole").mkdir()
    whole = Walk(tmp_path / "whole")
    whole.run()
    assert sum(map(len, whole.edges)) > LEAST_EDGES

    for number, plan in list(enumerate(plans(whole.edges)))[part::_PARTS]:
        (tmp_path / str(number)).mkdir()
        walk = Walk(tmp_path / str(number), plan)
        walk.run()
        planned = len(plan) - plan.count(None)
        assert len(walk.reached) + len(walk.missed) == planned
        assert len(walk.missed) <= 1 + planned // 10, walk.missed  # what threads write at times of their own
