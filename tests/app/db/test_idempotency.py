"""Keyed requests: one does the work, the others get its answer or are told to wait."""

import threading

import pytest
import sqlalchemy as sa

from app.db.idempotency import KEPT_SECONDS, IdempotencyRepository, KeptAnswer
from app.db.session import Database
from app.db.tables.documents import idempotent_request
from app.errors import AnswerNotKept, IdempotencyKeyReused, RequestRunning

ANSWER = KeptAnswer(status=202, media_type="application/json", body=b'{"id":"doc_1"}')


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def requests(database: Database, clock: Clock) -> IdempotencyRepository:
    return IdempotencyRepository(database, boot_id="boot-1", clock=clock)


def test_the_first_does_the_work_and_the_next_gets_its_answer(requests):
    assert requests.claim("r1", fingerprint="a") is None
    requests.keep("r1", ANSWER)

    assert requests.claim("r1", fingerprint="a") == ANSWER
    assert requests.claim("r1", fingerprint="a") == ANSWER


def test_while_the_first_runs_the_next_is_told_to_wait(requests):
    requests.claim("r1", fingerprint="a")

    with pytest.raises(RequestRunning):
        requests.claim("r1", fingerprint="a")


@pytest.mark.parametrize("finished", [False, True])
def test_another_payload_under_the_same_key_is_refused(requests, finished):
    requests.claim("r1", fingerprint="a")
    if finished:
        requests.keep("r1", ANSWER)

    with pytest.raises(IdempotencyKeyReused):
        requests.claim("r1", fingerprint="b")


def test_what_came_to_nothing_may_be_sent_again_even_changed(requests):
    requests.claim("r1", fingerprint="a")
    requests.release("r1")

    assert requests.claim("r1", fingerprint="b") is None


def test_an_answer_that_is_kept_is_not_released(requests):
    requests.claim("r1", fingerprint="a")
    requests.keep("r1", ANSWER)
    requests.release("r1")

    assert requests.claim("r1", fingerprint="a") == ANSWER


def test_after_a_day_the_key_begins_a_new_request(requests, clock):
    requests.claim("r1", fingerprint="a")
    requests.keep("r1", ANSWER)
    clock.now += KEPT_SECONDS - 1
    assert requests.claim("r1", fingerprint="a") == ANSWER
    clock.now += 1

    assert requests.claim("r1", fingerprint="b") is None


def test_what_is_expired_is_swept_with_the_next_claim(requests, clock, database):
    for number in range(5):
        requests.claim(f"old-{number}", fingerprint="a")
    clock.now += KEPT_SECONDS
    requests.claim("new", fingerprint="a")

    with database.read() as connection:
        assert connection.execute(sa.select(idempotent_request.c.id)).scalars().all() == ["new"]


def test_what_a_dead_process_left_running_is_free_again(requests, database, clock):
    requests.claim("r1", fingerprint="a")
    after_a_crash = IdempotencyRepository(database, boot_id="boot-2", clock=clock)

    assert after_a_crash.claim("r1", fingerprint="a") is None
    requests.release("r1")  # the dead one's last breath does not free what is another's now
    with pytest.raises(RequestRunning):
        after_a_crash.claim("r1", fingerprint="a")


def test_what_a_dead_process_finished_is_still_answered(requests, database, clock):
    requests.claim("r1", fingerprint="a")
    requests.keep("r1", ANSWER)

    assert IdempotencyRepository(database, boot_id="boot-2", clock=clock).claim("r1", fingerprint="a") == ANSWER


def test_an_answer_with_a_secret_is_not_stored(requests, database):
    requests.claim("r1", fingerprint="a")
    requests.keep("r1", ANSWER, secret=True)

    with pytest.raises(AnswerNotKept):
        requests.claim("r1", fingerprint="a")
    with database.read() as connection:
        assert connection.execute(sa.select(idempotent_request.c.body)).scalars().all() == [None]


def test_of_many_at_once_exactly_one_does_the_work(requests):
    outcomes: list[str] = []
    together = threading.Barrier(8)

    def send() -> None:
        together.wait()
        try:
            outcomes.append("mine" if requests.claim("r1", fingerprint="a") is None else "kept")
        except RequestRunning:
            outcomes.append("wait")

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["mine"] + ["wait"] * 7
