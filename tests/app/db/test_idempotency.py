"""Keyed requests: one does the work, the others get its answer or are told to wait."""

import threading
from contextvars import copy_context

import pytest
import sqlalchemy as sa

from app.db.idempotency import KEPT_SECONDS, IdempotencyRepository, KeptAnswer, forget_answers, note_effect
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.documents import idempotent_request, tenant
from app.db.tenants import ensure_tenant
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
    return IdempotencyRepository(database, OwnProcess.alone("boot-1", clock=clock))


def test_the_first_does_the_work_and_the_next_gets_its_answer(requests):
    assert requests.claim("r1", tenant_id="t1", fingerprint="a") is None
    requests.keep("r1", ANSWER)

    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER
    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER


def test_while_the_first_runs_the_next_is_told_to_wait(requests):
    requests.claim("r1", tenant_id="t1", fingerprint="a")

    with pytest.raises(RequestRunning):
        requests.claim("r1", tenant_id="t1", fingerprint="a")


@pytest.mark.parametrize("finished", [False, True])
def test_another_payload_under_the_same_key_is_refused(requests, finished):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    if finished:
        requests.keep("r1", ANSWER)

    with pytest.raises(IdempotencyKeyReused):
        requests.claim("r1", tenant_id="t1", fingerprint="b")


def test_what_came_to_nothing_may_be_sent_again_even_changed(requests):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.release("r1")

    assert requests.claim("r1", tenant_id="t1", fingerprint="b") is None


def test_an_answer_that_is_kept_is_not_released(requests):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER)
    requests.release("r1")

    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER


def test_after_a_day_the_key_begins_a_new_request(requests, clock):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER)
    clock.now += KEPT_SECONDS - 1
    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER
    clock.now += 1

    assert requests.claim("r1", tenant_id="t1", fingerprint="b") is None


def test_what_is_expired_is_swept_and_nothing_else(requests, clock, database):
    for number in range(5):
        requests.claim(f"old-{number}", tenant_id="t1", fingerprint="a")
        requests.keep(f"old-{number}", ANSWER)
    clock.now += KEPT_SECONDS
    requests.claim("new", tenant_id="t1", fingerprint="a")

    assert requests.sweep() == 5
    with database.read() as connection:
        assert connection.execute(sa.select(idempotent_request.c.id)).scalars().all() == ["new"]
    assert requests.sweep() == 0


def test_what_a_dead_process_left_running_is_free_again(requests, database, clock):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    after_a_crash = IdempotencyRepository(database, OwnProcess.alone("boot-2", clock=clock))

    assert after_a_crash.claim("r1", tenant_id="t1", fingerprint="a") is None
    requests.release("r1")  # the dead one's last breath does not free what is another's now
    with pytest.raises(RequestRunning):
        after_a_crash.claim("r1", tenant_id="t1", fingerprint="a")


def test_what_a_dead_process_finished_is_still_answered(requests, database, clock):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER)

    next_one = IdempotencyRepository(database, OwnProcess.alone("boot-2", clock=clock))
    assert next_one.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER


def test_an_answer_with_a_secret_is_not_stored(requests, database):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER, secret=True)

    with pytest.raises(AnswerNotKept):
        requests.claim("r1", tenant_id="t1", fingerprint="a")
    with database.read() as connection:
        assert connection.execute(sa.select(idempotent_request.c.body)).scalars().all() == [None]


def have_effect(requests: IdempotencyRepository, database: Database) -> None:
    """Claim a request and commit its effect, in a context of its own as each request has one."""

    def run() -> None:
        assert requests.claim("r1", tenant_id="t1", fingerprint="a") is None
        requests.enter("r1")
        with database.write() as connection:
            note_effect(connection)

    copy_context().run(run)


def test_a_request_whose_effect_is_committed_does_not_run_again_after_a_crash(requests, database, clock):
    have_effect(requests, database)
    with pytest.raises(RequestRunning):
        requests.claim("r1", tenant_id="t1", fingerprint="a")

    after_a_crash = IdempotencyRepository(database, OwnProcess.alone("boot-2", clock=clock))

    with pytest.raises(AnswerNotKept):
        after_a_crash.claim("r1", tenant_id="t1", fingerprint="a")


def test_a14_of_two_processes_that_work_on_a_request_only_its_holder_has_an_effect(requests, database, clock):
    """The second took the first for dead; the transaction of the first is rolled back, and its answer not kept."""
    first, second = copy_context(), copy_context()
    other = IdempotencyRepository(database, OwnProcess.alone("boot-2", clock=clock))
    effects: list[str] = []

    def work(on: IdempotencyRepository) -> None:
        assert on.claim("r1", tenant_id="t1", fingerprint="a") is None
        on.enter("r1")

    def effect(name: str) -> None:
        with database.write() as connection:
            connection.execute(sa.insert(tenant).values(id=name, created_at=0.0))
            note_effect(connection)
        effects.append(name)

    first.run(work, requests)
    second.run(work, other)
    with pytest.raises(RequestRunning):
        first.run(effect, "first")
    second.run(effect, "second")
    with pytest.raises(RequestRunning):
        first.run(effect, "first again")
    requests.keep("r1", KeptAnswer(status=200, media_type="text/plain", body=b"of the first"))
    requests.release("r1")
    other.keep("r1", ANSWER)

    assert effects == ["second"]
    with database.read() as connection:
        found = connection.execute(sa.select(tenant.c.id).where(tenant.c.id.in_(("first", "first again", "second"))))
        assert found.scalars().all() == ["second"]
    assert other.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER
    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER


def test_a_request_that_another_process_took_over_and_released_has_no_effect_here(requests, database, clock):
    mine = copy_context()

    def work() -> None:
        requests.claim("r1", tenant_id="t1", fingerprint="a")
        requests.enter("r1")

    def effect() -> None:
        with database.write() as connection:
            note_effect(connection)

    mine.run(work)
    other = IdempotencyRepository(database, OwnProcess.alone("boot-2", clock=clock))
    other.claim("r1", tenant_id="t1", fingerprint="a")
    other.release("r1")

    with pytest.raises(RequestRunning):
        mine.run(effect)
    requests.release("r1")
    mine.run(effect)  # after its own release a request is no longer one with a key


def test_a_request_may_have_several_effects(requests, database):
    def run() -> None:
        requests.claim("r1", tenant_id="t1", fingerprint="a")
        requests.enter("r1")
        for _ in range(2):
            with database.write() as connection:
                note_effect(connection)
        requests.keep("r1", ANSWER)
        with database.write() as connection:
            note_effect(connection)

    copy_context().run(run)

    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER


def test_a_request_that_fails_after_its_effect_does_not_run_again(requests, database):
    have_effect(requests, database)
    requests.release("r1")

    with pytest.raises(AnswerNotKept):
        requests.claim("r1", tenant_id="t1", fingerprint="a")


def test_a_request_that_had_its_effect_is_answered_with_its_answer(requests, database):
    have_effect(requests, database)
    requests.keep("r1", ANSWER)

    assert requests.claim("r1", tenant_id="t1", fingerprint="a") == ANSWER


def test_an_effect_of_no_keyed_request_is_not_noted(requests, database):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    with database.write() as connection:
        note_effect(connection)
    requests.release("r1")

    assert requests.claim("r1", tenant_id="t1", fingerprint="a") is None


def test_a_request_that_runs_does_not_expire_when_the_clock_jumps(requests, clock):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    clock.now += 2 * KEPT_SECONDS

    assert requests.sweep() == 0
    with pytest.raises(RequestRunning):
        requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER)
    assert requests.claim("r1", tenant_id="t1", fingerprint="a") is None, "its answer has expired"


def forget(database: Database, tenant_id: str) -> None:
    with database.write() as connection:
        forget_answers(connection, tenant_id)


def bodies(database: Database) -> dict[str, bytes | None]:
    with database.read() as connection:
        rows = connection.execute(sa.select(idempotent_request.c.id, idempotent_request.c.body))
        return {row.id: row.body if row.body is None else bytes(row.body) for row in rows}


def test_the_answers_of_a_tenant_that_deletes_are_forgotten_and_their_requests_do_not_run_again(requests, database):
    for request_id, tenant_id in (("mine", "t1"), ("theirs", "t2")):
        requests.claim(request_id, tenant_id=tenant_id, fingerprint="a")
        requests.keep(request_id, ANSWER)

    forget(database, "t1")

    assert bodies(database) == {"mine": None, "theirs": ANSWER.body}
    with pytest.raises(AnswerNotKept, match="was not repeated"):
        requests.claim("mine", tenant_id="t1", fingerprint="a")
    with pytest.raises(IdempotencyKeyReused):
        requests.claim("mine", tenant_id="t1", fingerprint="b")
    assert requests.claim("theirs", tenant_id="t2", fingerprint="a") == ANSWER


def test_the_answer_of_a_request_that_runs_during_a_deletion_is_not_kept(requests, database):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    forget(database, "t1")
    requests.keep("r1", ANSWER)

    assert bodies(database) == {"r1": None}
    with pytest.raises(AnswerNotKept):
        requests.claim("r1", tenant_id="t1", fingerprint="a")


def test_a_request_after_a_deletion_is_kept_again(requests, database, clock):
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    forget(database, "t1")
    requests.release("r1")
    requests.claim("r1", tenant_id="t1", fingerprint="a")
    requests.keep("r1", ANSWER)
    requests.claim("r2", tenant_id="t1", fingerprint="a")
    forget(database, "t1")
    requests.keep("r2", ANSWER)
    clock.now += KEPT_SECONDS
    requests.claim("r2", tenant_id="t1", fingerprint="a")
    requests.keep("r2", ANSWER)

    assert bodies(database) == {"r1": None, "r2": ANSWER.body}
    assert requests.claim("r2", tenant_id="t1", fingerprint="a") == ANSWER


def test_a_request_that_comes_during_a_deletion_begins_its_work_after_it(requests, database):
    with database.write() as connection:
        ensure_tenant(connection, "t1", now=1.0)
    claimed = threading.Event()

    def claim() -> None:
        requests.claim("r1", tenant_id="t1", fingerprint="a")
        claimed.set()

    with database.write() as connection:
        forget_answers(connection, "t1")
        reader = threading.Thread(target=claim)
        reader.start()
        assert not claimed.wait(0.3), "it could read what is being deleted, and keep it"
    reader.join(30)

    assert claimed.is_set()
    requests.keep("r1", ANSWER)
    assert bodies(database) == {"r1": ANSWER.body}


def test_of_many_at_once_exactly_one_does_the_work(requests):
    outcomes: list[str] = []
    together = threading.Barrier(8)

    def send() -> None:
        together.wait()
        try:
            outcomes.append("mine" if requests.claim("r1", tenant_id="t1", fingerprint="a") is None else "kept")
        except RequestRunning:
            outcomes.append("wait")

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["mine"] + ["wait"] * 7
