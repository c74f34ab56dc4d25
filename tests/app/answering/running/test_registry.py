"""app.answering.running.registry: an answer is stopped by the caller that asked for it, or by an administrator."""

from dataclasses import replace

import pytest

from app.answering.running.registry import RunningAnswers
from app.errors import NotFound
from app.types import OPENID, Principal, Role
from tests.app.answering.metered import meter_of
from tests.app.answering.retrieving.outlined import question

ASKER = Principal("t1", "ada", "key_1", Role.READER)


def stopped_by(caller: Principal, asker: Principal = ASKER) -> bool:
    """Whether a caller stops an answer that the asker waits for; one that may not is told that there is none."""
    running = RunningAnswers()
    asked = question("When was it?", principal=asker)
    meter = meter_of(asked)
    with running.during(asked, meter):
        try:
            running.cancel(asked.request_id, principal=caller)
        except NotFound:
            assert not meter.closed
            return False
    assert meter.closed
    return True


@pytest.mark.parametrize(
    "caller",
    [
        ASKER,
        replace(ASKER, user_id="another name of the same key"),
        replace(ASKER, key_id="key_2"),
        replace(ASKER, key_id="key_2", collections=("col_1",)),
        Principal("t1", "eve", "key_2", Role.ADMIN),
    ],
)
def test_the_asker_and_an_administrator_stop_an_answer(caller: Principal) -> None:
    assert stopped_by(caller)


@pytest.mark.parametrize(
    "caller",
    [
        Principal("t1", "eve", "key_2", Role.READER),
        Principal("t1", "eve", "key_2", Role.MEMBER),
        Principal("t1", "eve", "key_2", Role.READER, collections=("col_2",)),
        Principal("t1", "eve", "key_2", Role.ADMIN, collections=("col_2",)),
        Principal("t2", "ada", "key_1", Role.ADMIN),
    ],
)
def test_nobody_else_learns_that_it_runs(caller: Principal) -> None:
    assert not stopped_by(caller)


def test_users_without_keys_stop_their_own_answers_alone() -> None:
    ada, eve = (Principal("t1", user, OPENID, Role.MEMBER) for user in ("ada", "eve"))
    assert stopped_by(ada, ada)
    assert not stopped_by(eve, ada)
