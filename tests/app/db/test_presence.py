"""app.db.presence: who lives is judged by beats alone, and the dead are buried once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

import app.db.presence as presence_module
from app.db.migration import upgrade
from app.db.presence import BeatWatch, Presence, StoodStill, living, may_claim, not_living, require_alone, session_name
from app.db.server_lock import server_lock
from app.db.session import Database
from app.db.tables.ledger import process
from app.errors import SetupError, StoreUnavailable
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.postgres import empty_postgres

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]


class Ticks:
    """A monotonic clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def present(database: Database, boot_id: str, ticks: Ticks, **other: object) -> Presence:
    """A process that has registered."""
    taken: list[str] = []
    release = {"release": lambda _: taken.append(boot_id), "monotonic": ticks}
    presence = Presence(database, boot_id=boot_id, role="all", version="1", **(release | other))  # type: ignore[arg-type]
    presence.begin()
    return presence


def pass_time(ticks: Ticks, *alive: Presence, seconds: float) -> None:
    """Let time pass for those that live, who beat every three seconds."""
    for _ in range(round(seconds / 3)):
        ticks.now += 3
        for each in alive:
            each.turn()


def test_a_beat_that_stands_still_for_15_seconds_is_of_a_dead_process() -> None:
    watch = BeatWatch()

    found = [watch.look({"a": 1, "b": at}, asked=float(at), told=float(at)) for at in range(0, 19, 3)]

    assert found == [(), (), (), (), (), (StoodStill("a", 1),), (StoodStill("a", 1),)]


def test_the_time_it_took_to_read_the_beats_counts_for_the_process_that_is_watched() -> None:
    watch = BeatWatch()

    found = [watch.look({"a": 1}, asked=at, told=at + 2.0) for at in (0.0, 4.0, 8.0, 12.0, 16.0, 20.0)]

    assert [bool(dead) for dead in found] == [False, False, False, False, False, True]


def test_an_observer_that_stood_still_itself_begins_anew() -> None:
    watch = BeatWatch()

    found = [watch.look({"a": 1}, asked=at, told=at) for at in (0.0, 3.0, 30.0, 33.0, 36.0, 39.0, 42.0)]

    assert not any(found)
    assert watch.look({"a": 1}, asked=45.0, told=45.0) == (StoodStill("a", 1),)


def test_a_beat_that_goes_back_is_a_beat() -> None:
    """A crash of the database may forget the last ones."""
    watch = BeatWatch()

    for at in range(0, 60, 6):
        assert watch.look({"a": 9 - at}, asked=float(at), told=float(at)) == ()


@given(st.lists(st.tuples(st.floats(0.1, 20.0), st.booleans()), max_size=40))
def test_whoever_beats_within_15_seconds_is_never_dead_and_who_does_not_is(steps: list[tuple[float, bool]]) -> None:
    watch, at, beat = BeatWatch(), 0.0, 1
    watch.look({"a": beat}, asked=at, told=at)
    since = at
    for pause, beats in steps:
        at += pause
        if pause > 6:
            since = at
        if beats:
            beat, since = beat + 1, at
        assert bool(watch.look({"a": beat}, asked=at, told=at)) == (at - since >= 15)


@pytest.mark.parametrize("buriers", [1, 2])
def test_a_process_that_stands_still_is_buried_once(database: Database, buriers: int) -> None:
    ticks, released = Ticks(), []
    dead = present(database, "boot-0", ticks)
    alive = [
        present(database, f"boot-{number}", ticks, release=lambda _, number=number: released.append(number))
        for number in range(1, buriers + 1)
    ]
    dead.turn()
    for each in alive:
        each.turn()
    released.clear()

    pass_time(ticks, *alive, seconds=12)
    assert living(database) == {"boot-0", *(f"boot-{number}" for number in range(1, buriers + 1))}
    assert released == []
    pass_time(ticks, *alive, seconds=3)

    assert living(database) == {f"boot-{number}" for number in range(1, buriers + 1)}
    assert released == [1], "the second finds it buried"


def test_whoever_beats_stays(database: Database) -> None:
    ticks = Ticks()
    both = present(database, "boot-1", ticks), present(database, "boot-2", ticks)

    pass_time(ticks, *both, seconds=60)

    assert living(database) == {"boot-1", "boot-2"}


def test_a_restart_of_the_database_buries_nobody(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks()
    first, second = present(database, "boot-1", ticks), present(database, "boot-2", ticks)
    pass_time(ticks, first, second, seconds=12)
    ticks.now += 300  # nobody reaches it

    first.turn()
    pass_time(ticks, first, seconds=12)
    second.turn()

    assert living(database) == {"boot-1", "boot-2"}


def test_the_buried_process_is_told_by_its_next_beat_and_once(database: Database) -> None:
    ticks, told = Ticks(), []
    woken = present(database, "boot-1", ticks, on_buried=lambda: told.append("boot-1"))
    other = present(database, "boot-2", ticks)
    other.turn()
    pass_time(ticks, other, seconds=15)

    assert not woken.turn()
    assert not woken.turn()

    assert told == ["boot-1"]
    assert living(database) == {"boot-2"}
    with database.write() as connection:
        assert not may_claim("boot-1")(connection)
        assert may_claim("boot-2")(connection)


def test_a_process_that_beats_at_the_last_moment_is_not_buried(database: Database) -> None:
    """Between the beats that are read and the burial."""
    ticks, acts = Ticks(), [False]
    late = present(database, "boot-1", ticks)

    def time_of_the_burier() -> float:
        if acts.pop(0) if acts else False:
            late.turn()
        return ticks.now

    other = present(database, "boot-2", ticks, monotonic=time_of_the_burier)
    other.turn()
    pass_time(ticks, other, seconds=12)
    acts[:] = [False, True]
    pass_time(ticks, other, seconds=3)

    assert living(database) == {"boot-1", "boot-2"}


def test_who_cannot_take_over_the_work_of_the_dead_does_not_bury_it(database: Database) -> None:
    ticks = Ticks()
    fails = [True]

    def release(connection: sa.Connection) -> None:
        if fails and len(living_in(connection)) == 1:
            raise StoreUnavailable("A row is locked.")

    present(database, "boot-1", ticks)
    other = present(database, "boot-2", ticks, release=release)
    other.turn()
    pass_time(ticks, other, seconds=15)
    assert living(database) == {"boot-1", "boot-2"}, "one transaction"

    fails.clear()
    pass_time(ticks, other, seconds=3)
    assert living(database) == {"boot-2"}


def living_in(connection: sa.Connection) -> list[str]:
    return list(connection.execute(sa.select(process.c.boot_id).where(process.c.ended_at.is_(None))).scalars())


def test_what_a_process_takes_after_its_burial_is_taken_over_too(database: Database) -> None:
    ticks, released = Ticks(), []
    alive = present(database, "boot-1", ticks, release=lambda _: released.append(ticks.now))

    pass_time(ticks, alive, seconds=66)

    assert released == [0.0, 3.0, 33.0, 63.0]


def test_a_process_that_ends_gives_its_work_away_and_one_that_was_buried_has_none(database: Database) -> None:
    ticks, released = Ticks(), []
    first = present(database, "boot-1", ticks, release=lambda _: released.append("boot-1"))
    present(database, "boot-2", ticks)
    released.clear()

    first.end()
    first.end()

    assert released == ["boot-1"]
    assert living(database) == {"boot-2"}


def test_gone_is_who_never_registered_who_ended_and_who_was_buried(database: Database) -> None:
    ticks = Ticks()
    ended, buried, alive = (present(database, f"boot-{number}", ticks) for number in range(3))
    ended.end()
    alive.turn()
    pass_time(ticks, alive, seconds=15)
    del buried

    with database.read() as connection:
        for boot_id in ("boot-0", "boot-1", "boot-2", "boot-9", None):
            gone = connection.execute(sa.select(not_living(sa.literal(boot_id, sa.Text)))).scalar()
            assert bool(gone) == (boot_id != "boot-2")


def test_a_claim_under_way_is_waited_for(postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be committed after the burial has looked for what there is to take over."""
    monkeypatch.setattr(presence_module, "_LOCK_MS", 50)
    ticks = Ticks()
    present(postgres_database, "boot-1", ticks)
    other = present(postgres_database, "boot-2", ticks)
    other.turn()
    with postgres_database.write() as connection:
        assert may_claim("boot-1")(connection)
        pass_time(ticks, other, seconds=15)
        assert living(postgres_database) == {"boot-1", "boot-2"}
    pass_time(ticks, other, seconds=3)

    assert living(postgres_database) == {"boot-2"}


def test_a_beat_does_not_wait_for_a_claim(postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks()
    alive = present(postgres_database, "boot-1", ticks)

    with postgres_database.write() as connection:
        assert may_claim("boot-1")(connection)
        assert alive.turn()


def test_what_a_stopped_process_holds_in_a_transaction_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "_LOCK_MS", 20_000)
    ticks = Ticks()
    with empty_postgres() as url, opened(url) as database, opened(url, session_name("boot-1")) as its_own:
        upgrade(database)
        present(its_own, "boot-1", ticks)
        other = present(database, "boot-2", ticks)
        other.turn()

        def stand_still_in_a_transaction() -> None:
            with its_own.write() as connection:
                assert may_claim("boot-1")(connection)
                pass_time(ticks, other, seconds=15)
                connection.execute(sa.text("SELECT 1"))

        with pytest.raises(StoreUnavailable):
            stand_still_in_a_transaction()
        assert living(database) == {"boot-2"}


@contextmanager
def opened(url: str, name: str = "") -> Iterator[Database]:
    database = Database.open(url, session_name=name)
    try:
        yield database
    finally:
        database.close()


def test_who_is_alone_is_refused_while_others_beat(database: Database) -> None:
    ticks = Ticks()
    other = present(database, "boot-1", ticks)

    def wait(seconds: float) -> None:
        ticks.now += seconds
        other.turn()

    with pytest.raises(SetupError, match="share this database are running"):
        require_alone(database, monotonic=ticks, wait=wait)
    assert living(database) == {"boot-1"}


def test_who_is_alone_is_refused_while_another_registers(database: Database) -> None:
    ticks = Ticks()
    present(database, "boot-1", ticks)

    def wait(seconds: float) -> None:
        ticks.now += seconds
        if "boot-2" not in living(database):
            present(database, "boot-2", ticks)

    with pytest.raises(SetupError, match="share this database are running"):
        require_alone(database, monotonic=ticks, wait=wait)


def test_who_is_alone_waits_until_those_that_were_killed_are_known_to_be_dead(database: Database) -> None:
    ticks = Ticks()
    present(database, "boot-1", ticks)

    require_alone(database, monotonic=ticks, wait=lambda seconds: setattr(ticks, "now", ticks.now + seconds))

    assert ticks.now == 15.0
    assert living(database) == frozenset()
    require_alone(database, monotonic=ticks, wait=lambda seconds: pytest.fail("there is nobody to wait for"))


def test_one_that_shares_is_refused_while_one_that_is_alone_serves(postgres_database: Database) -> None:
    with server_lock(postgres_database, watch_s=60):
        with pytest.raises(SetupError, match="shares nothing"):
            present(postgres_database, "boot-1", Ticks())
        assert living(postgres_database) == frozenset()
    present(postgres_database, "boot-1", Ticks())


def test_the_lock_of_one_that_is_alone_is_given_back_where_it_is_refused(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(database: Database) -> None:
        raise SetupError("Processes are running.")

    monkeypatch.setattr("app.db.server_lock.require_alone", refuse)
    with pytest.raises(SetupError, match="Processes are running"), server_lock(postgres_database, watch_s=60):
        pytest.fail("it is not held")
    monkeypatch.undo()

    present(postgres_database, "boot-1", Ticks())


def test_one_that_is_alone_is_told_when_others_share_the_database_since_it_lost_its_lock(
    postgres_database: Database, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    lost: list[bool] = []
    with server_lock(postgres_database, on_loss=lambda: lost.append(True), watch_s=0.02):
        with postgres_database.write() as connection:  # as if it had registered while nobody held the lock
            row = {"boot_id": "boot-1", "role": "all", "version": "1", "host": "", "started_at": 0.0, "beat": 1}
            connection.execute(sa.insert(process).values(**row))
        with postgres_database.write() as connection:  # the row is committed by then: one who looks at once sees it
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            )
        wait_until(lambda: bool(lost))


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    import time

    def wait(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.01)

    return wait
