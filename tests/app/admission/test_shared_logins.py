"""app.admission.shared_logins: over all processes the decisions of one, also while the database is away."""

import asyncio
import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from app.admission.failed_logins import FailedLogins
from app.admission.rate_rows import RateRows
from app.admission.shared_logins import SharedFailedLogins
from app.db.session import Database
from app.db.tables.access import rate_grain
from app.errors import RateLimited, StoreUnavailable
from tests.app.admission.test_shared_rates import locked_at
from tests.app.usage.samples import Clock
from tests.statements import executions_of

LIMIT = 3
GUESSER, OTHER = "192.0.2.1", "192.0.2.2"
NUMBERS = itertools.count()


def brake(database: Database, clock: Clock, limit: int = LIMIT) -> SharedFailedLogins:
    """That of a process that has seen nothing yet."""
    own = FailedLogins(limit, clock=clock)
    return SharedFailedLogins(own, database, rows=RateRows(locked_at(clock)), monotonic=clock)


def guess(logins: SharedFailedLogins, address: str = GUESSER, credentials: str = "Bearer guess") -> int | None:
    """As a request with a wrong key does; the wait where it was refused, None where the key was looked up."""

    async def send() -> None:
        await logins.checked(address, credentials)
        await logins.counted(address)

    try:
        asyncio.run(send())
    except RateLimited as refused:
        return refused.retry_after_s
    return None


def counted(database: Database) -> int:
    with database.read() as connection:
        return sum(connection.execute(sa.select(rate_grain.c.amount)).scalars())


def test_an_address_that_guesses_at_all_processes_in_turn_is_refused_as_at_one(database: Database) -> None:
    clock = Clock(1000.0)
    processes = [brake(database, clock) for _ in range(4)]

    waits = [guess(processes[number % 4]) for number in range(9)]

    assert waits[:LIMIT] == [None] * LIMIT
    assert all(wait is not None and 59 <= wait <= 61 for wait in waits[LIMIT:])
    assert counted(database) == LIMIT
    assert [guess(each, OTHER) for each in processes] == [None] * LIMIT + [waits[-1]]
    assert [each.state(GUESSER).remaining for each in processes] == [0] * 4


def test_after_the_wait_it_may_guess_again(database: Database) -> None:
    clock = Clock(1000.0)
    first, second = brake(database, clock), brake(database, clock)
    for _ in range(LIMIT):
        guess(first)
    wait = guess(second)
    assert wait is not None
    clock.now += wait

    assert [guess(each) for each in (second, first, second)] == [None] * LIMIT
    assert guess(first) is not None


def test_a_refused_address_costs_no_look_until_its_wait_is_over(database: Database) -> None:
    clock = Clock(1000.0)
    first, second = brake(database, clock), brake(database, clock)
    for _ in range(LIMIT):
        guess(first)
    guess(second)

    with executions_of(database) as statements:
        refused = [guess(each) for each in (first, second) for _ in range(20)]

    assert None not in refused
    assert statements == []


def test_good_credentials_cost_one_look_in_an_hour_and_are_not_locked_out(database: Database) -> None:
    clock = Clock(1000.0)
    first, second = brake(database, clock), brake(database, clock)
    first.succeeded(GUESSER, "Bearer good")
    for _ in range(LIMIT):
        guess(second)

    asyncio.run(first.checked(GUESSER, "Bearer good"))
    assert guess(first, credentials="Bearer bad") is not None
    with pytest.raises(RateLimited):  # known where it was used: this process has not seen it
        asyncio.run(second.checked(GUESSER, "Bearer good"))


class Away(Database):
    """A database that cannot be reached while it is away."""

    away = False

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        if self.away:
            raise StoreUnavailable("It is away.")
        with super().read() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        if self.away:
            raise StoreUnavailable("It is away.")
        with super().write() as connection:
            yield connection


def away_database(url: str) -> Away:
    database = Away.open(url)
    assert isinstance(database, Away)
    return database


def test_while_the_database_is_away_each_process_counts_for_itself(migrated_file: Path, tmp_path: Path) -> None:
    database = away_database(f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'footnote.db')}")
    clock = Clock(1000.0)
    logins = brake(database, clock)
    guess(brake(database, clock))
    database.away = True

    assert [guess(logins) for _ in range(LIMIT)] == [None] * LIMIT
    assert guess(logins) is not None
    assert logins.state(GUESSER).remaining == 0
    database.away = False
    assert counted(database) == 1
    database.close()


def test_guesses_at_the_same_moment_are_all_counted_and_no_more_than_the_limit(postgres_database: Database) -> None:
    clock = Clock(1000.0)
    processes = [brake(postgres_database, clock) for _ in range(4)]

    async def all_of_them() -> None:
        await asyncio.gather(*(each.counted(GUESSER) for each in processes for _ in range(LIMIT)))

    asyncio.run(all_of_them())

    assert counted(postgres_database) == LIMIT
    assert None not in [guess(each) for each in processes]


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400)), max_size=25)  # a process, and tenths of a second


@settings(max_examples=25)
@given(steps=STEPS)
def test_three_processes_decide_as_one_does(
    migrated_file: Path, tmp_path_factory: pytest.TempPathFactory, steps
) -> None:
    file = shutil.copy(migrated_file, tmp_path_factory.mktemp("logins") / "footnote.db")
    database = Database.open(f"sqlite:///{file}")
    clock = Clock(1000.05)  # amid a grain: where one begins, a float may belong to the one before
    one, three = FailedLogins(LIMIT, clock=clock), [brake(database, clock) for _ in range(3)]
    try:
        for process, tenths in steps:
            clock.now += tenths / 10
            expected = None
            try:
                one.check(GUESSER, "Bearer guess")
                one.failed(GUESSER)
            except RateLimited as refused:
                expected = refused.retry_after_s
            assert guess(three[process]) == expected
            assert three[process].state(GUESSER) == one.state(GUESSER)
    finally:
        database.close()
