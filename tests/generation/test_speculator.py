"""generation.speculator: a drafter that fails costs its drafts and nothing else."""

import logging

import pytest

from generation.speculation import SpeculationPolicy
from generation.speculator import Expendable, Speculator
from tests.generation.fakes import request


class Failing:
    """Drafts once, then fails."""

    def __init__(self) -> None:
        self.pushed: list[int] = []
        self.calls = 0

    def push(self, token_id: int) -> None:
        self.pushed.append(token_id)

    def propose(self, limit: int) -> list[int]:
        self.calls += 1
        if self.calls > 1:
            raise MemoryError
        return [1, 2][:limit]


def test_a_drafter_that_fails_is_given_up_and_said_so_once(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()
    drafter = Expendable(failing)

    with caplog.at_level(logging.ERROR, logger="footnote.generation"):
        proposals = [drafter.propose(2) for _ in range(4)]
    drafter.push(9)

    assert proposals == [[1, 2], [], [], []]
    assert failing.calls == 2
    assert failing.pushed == []
    assert len(caplog.records) == 1


def test_without_a_draft_model_continuations_are_looked_up_in_the_prompt() -> None:
    drafter, _ = Speculator(SpeculationPolicy()).start(request(prompt=[1, 2, 3, 4, 5, 9, 1, 2, 3]))

    assert drafter.propose(2) == [4, 5]


def test_a_configured_draft_model_proposes_the_drafts() -> None:
    drafter, acceptance = Speculator(SpeculationPolicy(), draft_model=lambda prompt: Failing()).start(request())

    assert drafter.propose(1) == [1]
    assert acceptance.proposed == 0
