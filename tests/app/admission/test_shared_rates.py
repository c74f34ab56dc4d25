"""app.admission.shared_rates: the same decisions as in memory, exact over processes, and no seat is lost."""

import asyncio
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from app.admission.quotas import UNLIMITED, Quota
from app.admission.rate_rows import RateRows, sweep_in
from app.admission.rates import Rates
from app.admission.shared_rates import SharedRates
from app.db.dialect import clock_of, locked_clock
from app.db.presence import all_but
from app.db.session import Database
from app.db.tables.access import rate_grain, rate_seat
from app.errors import RateLimited, StoreUnavailable
from app.types import Principal, Role
from tests.app.admission.test_rates import Fixed
from tests.app.usage.samples import Clock
from tests.generation.fakes import wait_until

TENANTS = itertools.count()


def caller(tenant: int, key: int = 0) -> Principal:
    return Principal(f"t{tenant}", "u", f"k{key}", Role.MEMBER)


def locked_at(clock: Callable[[], float]) -> Callable[[sa.Connection, Sequence[str]], float]:
    """The locks of the database, and another clock."""

    def locked(connection: sa.Connection, names: Sequence[str]) -> float:
        locked_clock(connection, names)
        return clock()

    return locked


@contextmanager
def shared(
    database: Database, key: Quota = UNLIMITED, tenant: Quota = UNLIMITED, *, clock: Callable[[], float] | None = None
) -> Iterator[SharedRates]:
    """The counts of a process, which looks again at once where no seat was free."""
    rates = SharedRates(
        Fixed(key, tenant),
        database,
        boot_id="boot_1",
        rows=None if clock is None else RateRows(locked_at(clock)),
        monotonic=(lambda: 0.0) if clock is None else clock,
        looks_again_s=0.0,
    )
    try:
        yield rates
    finally:
        rates.close()


def begun(rates: SharedRates, principal: Principal) -> Callable[[], None]:
    return asyncio.run(rates.begun(principal))


def seats(database: Database) -> int:
    with database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(rate_seat)).scalar_one()


def refusal(work: Callable[[], object]) -> tuple[str, int, int | None, int] | None:
    """How it was refused; None if it was not."""
    try:
        work()
    except RateLimited as error:
        return error.name, error.limit, error.window_s, error.retry_after_s
    return None


@dataclass(slots=True)
class Both:
    """The same steps in memory and in a database; each must decide alike."""

    database: Database
    memory: Rates
    rates: SharedRates
    clock: Clock
    tenant: int
    requests: list[tuple[Callable[[], None], Callable[[], None]]] = field(default_factory=list)
    calls: list[tuple[object, object, int]] = field(default_factory=list)
    others: int = 0

    def begin(self, key: int) -> None:
        principal = caller(self.tenant, key)
        ends: list[Callable[[], None]] = []
        expected = refusal(lambda: ends.append(self.memory.begin(principal)))
        assert refusal(lambda: ends.append(begun(self.rates, principal))) == expected
        if expected is None:
            self.requests.append((ends[0], ends[1]))
        assert self.rates.states(principal) == self.memory.states(principal)

    def end(self, number: int) -> None:
        if self.requests:
            for end in self.requests.pop(number % len(self.requests)):
                end()
            wait_until(lambda: seats(self.database) == self.others + 2 * len(self.requests))

    def hold(self, key: int, amount: int) -> None:
        principal = caller(self.tenant, key)
        holds: list[object] = []
        with self.database.write() as connection:
            expected = refusal(lambda: holds.append(self.memory.hold_in(connection, principal, amount)))
            assert refusal(lambda: holds.append(self.rates.hold_in(connection, principal, amount))) == expected
        if holds:
            assert (holds[0] is None) == (holds[1] is None)
        if expected is None and holds[0] is not None:
            self.calls.append((holds[0], holds[1], amount))

    def settle(self, number: int, part: float) -> None:
        if self.calls:
            in_memory, in_rows, amount = self.calls.pop(number % len(self.calls))
            with self.database.write() as connection:
                self.memory.settle_in(connection, in_memory, round(amount * part))  # type: ignore[arg-type]
                self.rates.settle_in(connection, in_rows, round(amount * part))  # type: ignore[arg-type]


SMALL = st.none() | st.integers(1, 6)
QUOTAS = st.builds(
    Quota,
    requests_per_minute=SMALL,
    tokens_per_minute=st.none() | st.integers(1, 300),
    concurrent_requests=st.integers(1, 4),  # of both, so that each request has two seats
)
KEYS = st.integers(0, 1)
STEPS = st.lists(
    st.tuples(st.just("begin"), KEYS)
    | st.tuples(st.just("end"), st.integers(0, 9))
    | st.tuples(st.just("hold"), KEYS, st.integers(0, 320))
    | st.tuples(st.just("settle"), st.integers(0, 9), st.floats(0, 1.5))
    | st.tuples(st.just("pass"), st.integers(0, 3200)),  # fiftieths of a second
    max_size=30,
)


@settings(max_examples=40)
@given(key=QUOTAS, tenant=QUOTAS, steps=STEPS)
def decide_alike(database: Database, key: Quota, tenant: Quota, steps: list[tuple[str, int]]) -> None:
    clock = Clock(1_763_600_000.01)  # never at the edge of a grain, where floats of the memory's clock are in doubt
    ticks = 0
    with shared(database, key, tenant, clock=clock) as rates:
        memory = Rates(Fixed(key, tenant), clock=clock)
        both = Both(database, memory, rates, clock, next(TENANTS), others=seats(database))
        for name, *values in steps:
            if name == "pass":
                ticks += values[0]
                clock.now = 1_763_600_000.01 + ticks / 50
            else:
                getattr(both, name)(*values)
        while both.requests:
            both.end(0)


def test_memory_and_database_decide_alike(database: Database) -> None:
    decide_alike(database)


def test_a_request_without_room_is_not_counted(database: Database) -> None:
    def full() -> None:
        raise ZeroDivisionError

    with shared(database, Quota(requests_per_minute=1, concurrent_requests=1)) as rates:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(rates.begun(caller(0), room=full))
        wait_until(lambda: not seats(database))
        begun(rates, caller(0))()


def test_a_caller_without_limits_is_not_counted_anywhere(database: Database) -> None:
    joined: list[int] = []
    with shared(database) as rates:
        asyncio.run(rates.begun(caller(0), room=lambda: joined.append(1)))()
        with database.write() as connection:
            assert rates.hold_in(connection, caller(0), 10**9) is None

    assert joined == [1]
    with database.read() as connection:
        assert connection.execute(sa.select(rate_grain)).all() == []


def test_a_client_that_leaves_while_it_is_counted_leaves_no_seat(postgres_database: Database) -> None:
    """The count waits for a lock that the test holds."""
    held, counting = threading.Event(), threading.Event()

    def locked(connection: sa.Connection, names: Sequence[str]) -> float:
        counting.set()
        assert held.wait(30)
        return locked_clock(connection, names)

    quota = Quota(requests_per_minute=5, concurrent_requests=1)
    rates = SharedRates(Fixed(quota), postgres_database, boot_id="boot_1", rows=RateRows(locked))

    async def leave() -> None:
        request = asyncio.ensure_future(rates.begun(caller(0)))
        await asyncio.to_thread(counting.wait, 30)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(leave())
    held.set()
    rates.close()  # waits for what was begun
    with shared(postgres_database, quota) as others:
        begun(others, caller(0))
        assert others.states(caller(0))[0].remaining == 3, "it was sent, and counts as a request"


def test_a_seat_that_a_burial_took_may_be_given_back_and_other_processes_keep_theirs(database: Database) -> None:
    with shared(database, Quota(concurrent_requests=2)) as rates:
        end = begun(rates, caller(0))
        with database.write() as connection:
            assert sweep_in(connection, all_but("boot_1")) == 0
            assert sweep_in(connection, all_but("another")) == 1
        end()
        begun(rates, caller(0))
        begun(rates, caller(0))
        with pytest.raises(RateLimited):
            begun(rates, caller(0))


def test_what_no_window_holds_is_deleted(database: Database) -> None:
    with database.write() as connection:
        now = round(clock_of(connection) * 10)
    past = Clock(now / 10 - 121)
    with shared(database, Quota(requests_per_minute=9), clock=past) as rates:
        begun(rates, caller(0))()
        past.now += 3
        begun(rates, caller(0))()
    with database.write() as connection:
        sweep_in(connection, all_but("boot_1"))
        left = connection.execute(sa.select(rate_grain.c.grain)).scalars().all()

    assert [now - grain for grain in left] in ([1180], [1179], [1181])


class Away(Database):
    """A database that cannot be reached while it is away."""

    away = False

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        if self.away:
            raise StoreUnavailable("It is away.")
        with super().write() as connection:
            yield connection


def test_seats_are_given_back_once_the_database_is_there_again(migrated_file: Path, tmp_path: Path) -> None:
    path = shutil.copy(migrated_file, tmp_path / "footnote.db")
    database = Away.open(f"sqlite:///{path}")
    assert isinstance(database, Away)
    with shared(database, Quota(concurrent_requests=1)) as rates:
        end = begun(rates, caller(0))
        database.away = True
        end()
        with pytest.raises(StoreUnavailable):
            begun(rates, caller(1))
        database.away = False
        begun(rates, caller(0))()
    assert seats(database) == 0
    database.close()


@contextmanager
def four(database: Database, quota: Quota) -> Iterator[list[SharedRates]]:
    """The counts of four processes."""
    with ExitStack() as stack:
        yield [stack.enter_context(shared(database, tenant=quota)) for _ in range(4)]


def test_tokens_are_exact_beside_each_other(postgres_database: Database) -> None:
    """In eight transactions at once, of four processes, 10 tokens each."""
    together = threading.Barrier(8)

    def reserve(rates: SharedRates, key: int) -> int:
        together.wait()
        got = 0
        for _ in range(10):
            with postgres_database.write() as connection:
                got += refusal(lambda c=connection: rates.hold_in(c, caller(0, key), 10)) is None  # type: ignore[misc]
        return got

    with four(postgres_database, Quota(tokens_per_minute=333)) as processes, ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(reserve, processes * 2, range(8)))

    assert sum(counts) == 33


def test_tokens_of_a_transaction_that_fails_are_free_again(postgres_database: Database) -> None:
    with shared(postgres_database, Quota(tokens_per_minute=10)) as rates:
        with suppress(ZeroDivisionError), postgres_database.write() as connection:
            assert rates.hold_in(connection, caller(0), 10) is not None
            raise ZeroDivisionError
        with postgres_database.write() as connection:
            assert rates.hold_in(connection, caller(0), 10) is not None
