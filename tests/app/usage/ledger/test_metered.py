"""A metered call is reserved before its body runs, and settled once, however the body ends."""

import asyncio
from collections.abc import Generator

import pytest

from app.db.session import Database
from app.errors import DeadlinePassed, StoreUnavailable
from app.types import Components, Operation, Reservation, UsageStatus
from app.usage.ledger.entry import Entry
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from tests.app.usage.samples import reservation
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, "boot-1")


def embedding() -> Reservation:
    return reservation(operation=Operation.EMBED_QUERY, input_tokens=20, components=Components(), max_output_tokens=0)


def only(ledger: Ledger) -> UsageEvent:
    (event,) = ledger.usage("req_1")
    return event


def test_the_call_is_reserved_while_the_body_runs(ledger: Ledger) -> None:
    with ledger.metered(embedding()):
        assert only(ledger).status == UsageStatus.RESERVED


@pytest.mark.parametrize(("read", "settled"), [(None, 20), (20, 20), (7, 7), (0, 0)])
def test_a_body_that_ends_settles_as_completed(ledger: Ledger, read: int | None, settled: int) -> None:
    with ledger.metered(embedding()) as call:
        call.input_tokens = read

    assert (only(ledger).status, only(ledger).input_tokens) == (UsageStatus.COMPLETED, settled)


def test_a_body_that_returns_settles_as_completed(ledger: Ledger) -> None:
    def scores() -> list[float]:
        with ledger.metered(embedding()):
            return [0.5]

    assert scores() == [0.5]
    assert only(ledger).status == UsageStatus.COMPLETED


@pytest.mark.parametrize(
    "error", [RuntimeError("broken"), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1)]
)
def test_a_body_that_raises_settles_as_an_error_with_the_reserved_count(ledger: Ledger, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, ledger.metered(embedding()):
        raise error

    assert raised.value is error
    assert (only(ledger).status, only(ledger).input_tokens) == (UsageStatus.ERROR, 20)


def test_a_body_that_raises_can_settle_what_it_read_and_as_what(ledger: Ledger) -> None:
    def read() -> None:
        with ledger.metered(embedding()) as call:
            call.input_tokens = 5
            call.status_on_error = UsageStatus.SERVER_ABORT
            raise DeadlinePassed

    with pytest.raises(DeadlinePassed):
        read()
    assert (only(ledger).status, only(ledger).input_tokens) == (UsageStatus.SERVER_ABORT, 5)


def test_a_generator_closed_within_the_body_settles_as_an_error(ledger: Ledger) -> None:
    def parts() -> Generator[None]:
        with ledger.metered(embedding()):
            yield

    running = parts()
    next(running)
    running.close()
    assert only(ledger).status == UsageStatus.ERROR


def test_what_cannot_be_reserved_is_not_run(sqlite_database: Database) -> None:
    class Refuses:
        """Implements `LedgerObserver`."""

        def reserve_in(self, *_: object, **__: object) -> None:
            raise StoreUnavailable

        def settle_in(self, connection: object, entry: Entry) -> None:
            raise AssertionError("nothing was reserved")

    ledger = Ledger(sqlite_database, "boot-1", observers=[Refuses()])
    with pytest.raises(StoreUnavailable), ledger.metered(embedding()):
        raise AssertionError("the body must not run")

    assert ledger.usage("req_1") == ()


def test_calls_within_calls_settle_by_themselves(ledger: Ledger) -> None:
    with ledger.metered(embedding()), pytest.raises(RuntimeError), ledger.metered(reservation("req_1:2")):
        raise RuntimeError

    assert [event.status for event in ledger.usage("req_1")] == [UsageStatus.COMPLETED, UsageStatus.ERROR]
