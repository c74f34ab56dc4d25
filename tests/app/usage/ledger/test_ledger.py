"""A call is reserved on the ledger before it runs, settled once, and never changed after."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.db.dialect import clock_of
from app.db.session import Database
from app.db.tables.usage_columns import Measures
from app.types import Components, DocumentShare, Operation, Settlement, UsageStatus
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from tests.app.usage.samples import Clock, reservation

DONE = Settlement(
    status=UsageStatus.COMPLETED,
    cached_tokens=7,
    output_tokens=41,
    delivered_tokens=40,
    first_token_ms=85.5,
    total_ms=640.25,
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(database: Database, clock: Clock) -> Ledger:
    return Ledger(database, "boot-1", clock)


def only(ledger: Ledger, request_id: str = "req_1") -> UsageEvent:
    (event,) = ledger.usage(request_id)
    return event


def test_a_reserved_call_is_on_the_ledger_with_its_parts(ledger: Ledger, clock: Clock) -> None:
    shares = (DocumentShare("doc_1", 2, 5), DocumentShare("doc_2", 1, 1))
    ledger.reserve(reservation(documents=shares))

    assert only(ledger) == UsageEvent(
        event_id="req_1:1",
        request_id="req_1",
        operation=Operation.CHAT,
        status=UsageStatus.RESERVED,
        count_quality="none",
        tenant_id="t1",
        user_id="u1",
        key_id="k1",
        model="m1",
        tokenizer_revision="r1",
        measures=Measures.read(20, Components(template=2, system=3, history=4, question=5, context=6)),
        max_output_tokens=100,
        cost_pico=None,
        accepted_at=round(clock.now * 1_000_000),
        settled_at=None,
        documents=shares,
    )


def test_a_settlement_counts_once(ledger: Ledger, clock: Clock) -> None:
    ledger.reserve(reservation())
    clock.now += 1.5

    assert ledger.settle("req_1:1", DONE)
    settled = only(ledger)
    clock.now += 1
    assert not ledger.settle("req_1:1", replace(DONE, output_tokens=50))
    assert only(ledger) == settled
    assert (settled.status, settled.count_quality) == (UsageStatus.COMPLETED, "exact")
    assert (settled.cached_tokens, settled.output_tokens, settled.delivered_tokens) == (7, 41, 40)
    assert settled.settled_at == settled.accepted_at + 1_500_000
    assert settled.cost_pico is None, "unpriced is not free"


def test_of_many_settlements_at_once_one_counts(ledger: Ledger) -> None:
    ledger.reserve(reservation())

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: ledger.settle("req_1:1", replace(DONE, output_tokens=40 + n)), range(8)))

    assert sum(won) == 1
    assert only(ledger).output_tokens == 40 + won.index(True)


def test_times_are_kept_in_microseconds(ledger: Ledger, database: Database) -> None:
    ledger.reserve(reservation())
    ledger.settle("req_1:1", DONE)

    with database.read() as connection:
        row = connection.execute(
            sa.text("SELECT ttft_us, total_us, first_token_at - accepted_at AS wait FROM usage_event")
        ).one()
    assert (row.ttft_us, row.total_us, row.wait) == (85_500, 640_250, 85_500)


def test_an_embedding_has_tokens_and_no_parts(ledger: Ledger) -> None:
    ledger.reserve(reservation(operation=Operation.EMBED_DOC, input_tokens=900, max_output_tokens=0))

    assert ledger.settle("req_1:1", Settlement(status=UsageStatus.ERROR, input_tokens=300))
    assert (only(ledger).input_tokens, only(ledger).status) == (300, UsageStatus.ERROR)


@pytest.mark.parametrize("operation", [Operation.CHAT, Operation.REWRITE])
@pytest.mark.parametrize(
    ("counted", "parts", "shares"),
    [
        (0, Components(), (0, 0)),
        (23, Components(5, 3, 4, 5, 6), (4, 2)),
        (19, Components(1, 3, 4, 5, 6), (4, 2)),
        (10, Components(1, 2, 2, 2, 3), (2, 1)),
        (1, Components(0, 0, 0, 0, 1), (1, 0)),
    ],
)
def test_a_generators_parts_and_documents_sum_to_whatever_a_server_counts(
    ledger: Ledger, operation: Operation, counted: int, parts: Components, shares: tuple[int, int]
) -> None:
    ledger.reserve(
        reservation(operation=operation, documents=[DocumentShare("doc_1", 2, 4), DocumentShare("doc_2", 1, 2)])
    )
    ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, input_tokens=counted))

    row = only(ledger)
    assert (row.components, row.input_tokens) == (parts, counted)
    assert tuple(share.tokens for share in row.documents) == shares
    assert [share.chunks for share in row.documents] == [2, 1]


def test_a_share_shrinks_to_what_its_settled_call_read_and_no_further(ledger: Ledger, database: Database) -> None:
    shares = [DocumentShare("doc_1", 2, 4), DocumentShare("doc_2", 1, 2)]
    ledger.reserve(reservation(documents=shares))
    ledger.reserve(reservation("req_2:1", documents=shares))
    ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, input_tokens=10))
    ledger.settle("req_2:1", Settlement(status=UsageStatus.COMPLETED, input_tokens=20))

    for forged in ("tokens = tokens - 1", "tokens = tokens + 1", "chunks = 9", "document_id = 'doc_3'"):
        with pytest.raises(sa.exc.IntegrityError, match="immutable"), database.write() as connection:
            connection.exec_driver_sql(f"UPDATE usage_event_document SET {forged} WHERE document_id = 'doc_1'")
    assert [share.tokens for share in only(ledger).documents] == [2, 1]
    assert [share.tokens for share in only(ledger, "req_2").documents] == [4, 2]


def test_the_shares_of_a_call_that_runs_do_not_change(ledger: Ledger, database: Database) -> None:
    ledger.reserve(reservation(documents=[DocumentShare("doc_1", 1, 6)]))

    with pytest.raises(sa.exc.IntegrityError, match="immutable"), database.write() as connection:
        connection.exec_driver_sql("UPDATE usage_event_document SET tokens = 5")


def test_a_prompt_that_was_never_read_was_read_of_no_document(ledger: Ledger, database: Database) -> None:
    ledger.reserve(reservation(documents=[DocumentShare("doc_1", 1, 6)]))
    assert only(ledger).documents == (DocumentShare("doc_1", 1, 6),)
    unread = Settlement(status=UsageStatus.CLIENT_ABORT, input_tokens=0)

    assert ledger.settle("req_1:1", unread)
    assert only(ledger).documents == (DocumentShare("doc_1", 1, 0),)
    for forged in ("tokens = 6", "chunks = 2", "document_id = 'doc_2'"):
        with pytest.raises(sa.exc.IntegrityError, match="immutable"), database.write() as connection:
            connection.exec_driver_sql(f"UPDATE usage_event_document SET {forged}")


def test_several_calls_of_one_request_are_told_in_order(ledger: Ledger, clock: Clock) -> None:
    ledger.reserve(reservation("req_1:1", operation=Operation.EMBED_QUERY, input_tokens=9, max_output_tokens=0))
    clock.now += 1
    ledger.reserve(reservation("req_1:2"))
    ledger.reserve(reservation("req_2:1"))

    assert [event.event_id for event in ledger.usage("req_1")] == ["req_1:1", "req_1:2"]
    assert ledger.usage("req_9") == ()


def test_a_reservation_is_made_once(ledger: Ledger) -> None:
    ledger.reserve(reservation())

    with pytest.raises(sa.exc.IntegrityError):
        ledger.reserve(reservation(user_id="u2"))
    assert only(ledger).user_id == "u1"


@pytest.mark.parametrize(
    "impossible",
    [
        replace(DONE, cached_tokens=21),
        replace(DONE, cached_tokens=-1),
        replace(DONE, output_tokens=101),
        replace(DONE, output_tokens=39),
        replace(DONE, delivered_tokens=-1),
    ],
    ids=["cached > input", "cached < 0", "output > max", "delivered > output", "delivered < 0"],
)
def test_the_database_refuses_counts_that_cannot_be(ledger: Ledger, impossible: Settlement) -> None:
    ledger.reserve(reservation())

    with pytest.raises(sa.exc.IntegrityError):
        ledger.settle("req_1:1", impossible)
    assert only(ledger).status == UsageStatus.RESERVED
    assert ledger.settle("req_1:1", DONE)


def test_the_database_refuses_parts_that_do_not_sum_to_the_prompt(ledger: Ledger, database: Database) -> None:
    ledger.reserve(reservation())

    with pytest.raises(sa.exc.IntegrityError), database.write() as connection:
        connection.execute(sa.text("UPDATE usage_event SET tok_template = tok_template + 1"))


def test_parts_that_do_not_sum_to_the_prompt_are_our_mistake(ledger: Ledger) -> None:
    with pytest.raises(AssertionError):
        ledger.reserve(reservation(input_tokens=19))
    assert ledger.usage("req_1") == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE usage_event SET output_tokens = 1",
        "UPDATE usage_event SET status = 'reserved', settled_at = NULL",
        "UPDATE usage_event SET cost_pico = 0",
        "DELETE FROM usage_event_document",
        "UPDATE usage_event_document SET tokens = 0",
        "UPDATE api_request SET user_id = ''",
    ],
)
def test_what_is_settled_cannot_be_changed_by_anyone(ledger: Ledger, database: Database, statement: str) -> None:
    ledger.reserve(reservation(documents=[DocumentShare("doc_1", 1, 6)]))
    ledger.settle("req_1:1", DONE)
    before = only(ledger)

    with pytest.raises(sa.exc.IntegrityError, match=r"immutable|never deleted"), database.write() as connection:
        connection.exec_driver_sql(statement)
    assert only(ledger) == before


@pytest.mark.parametrize("table", ["usage_event", "api_request"])
def test_no_row_is_ever_deleted(ledger: Ledger, database: Database, table: str) -> None:
    ledger.reserve(reservation())

    with pytest.raises(sa.exc.IntegrityError, match="never deleted"), database.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM {table}")
    assert len(ledger.usage("req_1")) == 1


def test_what_a_dead_process_left_open_is_recovered_at_its_last_checkpoint(
    ledger: Ledger, database: Database, clock: Clock
) -> None:
    for number, noted in ((1, 0), (2, 64), (3, 0)):
        ledger.reserve(reservation(f"req_{number}:1"))
        ledger.checkpoint(f"req_{number}:1", noted)
    ledger.checkpoint("req_2:1", 32)
    ledger.settle("req_3:1", DONE)
    after = Ledger(database, "boot-2", clock)
    after.reserve(reservation("req_4:1"))

    assert after.recover() == 2
    assert after.recover() == 0
    found = [only(after, f"req_{number}") for number in (1, 2, 3, 4)]
    assert [event.status for event in found] == ["recovered", "recovered", "completed", "reserved"]
    assert [event.output_tokens for event in found] == [0, 64, 41, 0]
    assert [event.count_quality for event in found] == ["checkpoint", "checkpoint", "exact", "none"]
    assert not after.settle("req_1:1", DONE), "too late"


def test_a_late_checkpoint_changes_nothing(ledger: Ledger) -> None:
    ledger.reserve(reservation())
    ledger.settle("req_1:1", DONE)

    ledger.checkpoint("req_1:1", 99)

    assert only(ledger).output_tokens == 41


def test_a_call_that_was_never_reserved_cannot_be_settled(ledger: Ledger) -> None:
    with pytest.raises(AssertionError):
        ledger.settle("req_9:1", DONE)


@pytest.mark.parametrize("ahead", [-2.0, 2.0])
def test_nothing_is_settled_before_a_moment_of_a_process_whose_clock_differs(database: Database, ahead: float) -> None:
    """Both settle by the database's clock."""
    here = Ledger(database, "boot-1", lambda: time.time() + ahead, clock_in=clock_of)
    there = Ledger(database, "boot-2", lambda: time.time() - ahead, clock_in=clock_of)
    for number in range(3):
        here.reserve(reservation(f"req_{number}:1", user_id=f"u{number}"))
        before = there.moment()
        assert here.settle(f"req_{number}:1", DONE)
        settled_at = only(here, f"req_{number}").settled_at
        assert settled_at is not None
        assert before <= settled_at
        if ahead < 0:  # else it was accepted later than it was settled, by the clock of its process
            assert settled_at <= there.moment()
