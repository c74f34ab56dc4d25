"""app.db.watches, watch_runs and watch_changes: reach, limits, claims, fences, and the changes of a scope."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from app.db.collections import CollectionRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.watches import scope_change
from app.db.watch_changes import SETTLING_S, WatchChanges
from app.db.watch_runs import DAY_S, ClaimedWatch, NewEvent, WatchDeliveries, WatchLook, WatchRuns
from app.db.watches import Watch, WatchBudget, WatchRepository, WatchScope, WatchTerms
from app.errors import Conflict, Forbidden, InvalidRequest, NotFound
from app.types import Principal, Role
from tests.app.db.samples import Library

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)
BOB = Principal("t1", "bob", "key_b", Role.MEMBER)
ROOT = Principal("t1", "root", "key_r", Role.ADMIN)
STRANGER = Principal("t2", "ann", "key_a", Role.ADMIN)
HOUR = WatchTerms(question="What is the fee?", every_s=3600)
LEAST_S = 60
ANSWER = {"id": "req_1", "answered": True, "citations": []}


class Station:
    """The repositories over one database, with a clock that the test moves."""

    def __init__(self, database: Database, *, most: int = 20, events_kept: int = 100) -> None:
        self.database = database
        self.now = 1000.0
        self.watches = WatchRepository(database, most=most, least_s=LEAST_S, clock=self.clock)
        self.events_kept = events_kept
        self.runs = self.runs_of("boot_1")
        self.changes = WatchChanges(database, OwnProcess.alone("boot_1", clock=self.clock), least_s=LEAST_S)
        self.deliveries = WatchDeliveries(database, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def runs_of(self, boot_id: str, *, gone: Sequence[str] = ()) -> WatchRuns:
        own = OwnProcess(boot_id, lambda boot: boot.in_(list(gone)), self.clock)
        return WatchRuns(self.database, own, events_kept=self.events_kept, least_s=LEAST_S)

    def claimed(self, runs: WatchRuns | None = None) -> ClaimedWatch:
        found = (runs or self.runs).claim()
        assert found is not None
        return found

    def get(self, watch: Watch) -> Watch:
        return self.watches.get(watch.id, principal=ROOT)

    def look(self, watch: Watch) -> None:
        """Look at a watch that is due, and find nothing new."""
        claimed = self.claimed()
        assert claimed.watch.id == watch.id
        assert self.runs.finish(claimed, WatchLook(state="current", looked=True, presented=(), answer=ANSWER))


@pytest.fixture
def station(database: Database) -> Station:
    return Station(database)


def event_of(number: int = 1, *, deliver: bool = False) -> NewEvent:
    return NewEvent(ANSWER, {**ANSWER, "id": f"req_{number}"}, [{"kinds": ["number"]}], deliver=deliver)


def test_a_watch_is_its_users_and_an_administrators(station: Station) -> None:
    made = station.watches.create(ANN, HOUR)
    assert (made.question, made.every_s, made.on_change, made.state) == ("What is the fee?", 3600, False, "waiting")
    assert (made.due_at, made.key_id) == (1000.0, "key_a")

    assert station.watches.list(ANN, limit=10)[0] == (made,)
    assert station.watches.list(ROOT, limit=10)[0] == (made,)


@pytest.mark.parametrize("other", [BOB, STRANGER, Principal("t1", "ann", "key_c", Role.MEMBER, ("col_1",))])
def test_a_watch_is_hidden_from_others_and_from_limited_keys_that_did_not_make_it(
    station: Station, other: Principal
) -> None:
    made = station.watches.create(ANN, HOUR)

    assert station.watches.list(other, limit=10) == ((), None)
    for refused in (
        lambda: station.watches.get(made.id, principal=other),
        lambda: station.watches.delete(made.id, principal=other),
        lambda: station.watches.update(made.id, WatchTerms(paused=True), principal=other),
        lambda: station.watches.events(made.id, principal=other, limit=1),
    ):
        with pytest.raises(NotFound):
            refused()


def test_an_administrator_pauses_others_watches_and_changes_nothing_else(station: Station) -> None:
    made = station.watches.create(ANN, HOUR)
    with pytest.raises(Forbidden):
        station.watches.update(made.id, WatchTerms(question="Mine?", paused=True), principal=ROOT)
    assert station.watches.update(made.id, WatchTerms(paused=True), principal=ROOT).due_at is None
    assert station.runs.claim() is None
    assert station.watches.update(made.id, WatchTerms(paused=False), principal=ANN).due_at == 1000.0


def test_a_schedule_is_needed_and_has_a_shortest_interval(station: Station) -> None:
    for terms in (WatchTerms(question="x"), WatchTerms(question="x", every_s=LEAST_S - 1)):
        with pytest.raises(InvalidRequest):
            station.watches.create(ANN, terms)
    made = station.watches.create(ANN, HOUR)
    with pytest.raises(InvalidRequest):
        station.watches.update(made.id, WatchTerms(every_s=None), principal=ANN)
    with pytest.raises(InvalidRequest):
        station.watches.create(ANN, WatchTerms(question="\0", on_change=True))
    assert station.watches.update(made.id, WatchTerms(every_s=None, on_change=True), principal=ANN).on_change


def test_a_key_has_so_many_watches_also_when_all_are_made_at_once(database: Database) -> None:
    station = Station(database, most=3)
    refused: list[Conflict] = []

    def make() -> None:
        try:
            station.watches.create(ANN, HOUR)
        except Conflict as error:
            refused.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(refused) == 3
    assert len(station.watches.list(ANN, limit=10)[0]) == 3
    station.watches.create(BOB, HOUR)


def test_lists_are_paged(station: Station) -> None:
    made = []
    for _ in range(3):
        station.now += 1
        made.append(station.watches.create(ANN, HOUR).id)
    first, cursor = station.watches.list(ANN, limit=2)
    rest, end = station.watches.list(ANN, limit=2, cursor=cursor)

    assert [one.id for one in (*first, *rest)] == made[::-1]
    assert end is None


def test_terms_are_stored_and_null_removes_a_limit(station: Station) -> None:
    scope = WatchScope(("col_1",), ("doc_1", "doc_2"), {"year": {"$gte": 2024}})
    made = station.watches.create(
        ANN, WatchTerms(question="x", on_change=True, scope=scope, budget=WatchBudget(10, "day"))
    )
    assert (made.scope, made.budget) == (scope, WatchBudget(10, "day"))
    changed = station.watches.update(made.id, WatchTerms(scope=WatchScope(), budget=None), principal=ANN)
    assert (changed.scope, changed.budget) == (WatchScope(), None)


def test_a_due_watch_is_claimed_by_one_of_many(station: Station) -> None:
    made = {station.watches.create(ANN, HOUR).id for _ in range(8)}
    taken: list[str] = []
    lock = threading.Lock()

    def take(runs: WatchRuns) -> None:
        while (claimed := runs.claim()) is not None:
            with lock:
                taken.append(claimed.watch.id)
            assert runs.finish(claimed, WatchLook(state="current", looked=True))

    threads = [threading.Thread(target=take, args=(station.runs_of(f"boot_{number}"),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == sorted(made)


def test_a_claim_of_a_living_process_stands_and_of_a_gone_one_does_not(station: Station) -> None:
    watch = station.watches.create(ANN, HOUR)
    first = station.claimed()
    assert station.runs_of("boot_2").claim() is None

    second = station.claimed(station.runs_of("boot_2", gone=["boot_1"]))
    assert second.watch.id == watch.id
    assert not station.runs.finish(first, WatchLook(state="current", looked=True, event=event_of()))
    assert station.get(watch).state == "waiting"
    assert station.watches.events(watch.id, principal=ANN, limit=9) == ((), None)
    look = WatchLook(state="current", looked=True, presented=(), answer=ANSWER, event=event_of())
    assert station.runs_of("boot_2").finish(second, look)
    assert len(station.watches.events(watch.id, principal=ANN, limit=9)[0]) == 1


def test_a_run_without_a_result_is_due_again_for_the_same_process(station: Station) -> None:
    station.watches.create(ANN, HOUR)
    lost, again = station.claimed(), station.claimed()

    assert again.claim == lost.claim + 1
    assert not station.runs.finish(lost, WatchLook(state="current"))
    assert station.runs.finish(again, WatchLook(state="current"))


def test_a_process_that_others_have_buried_claims_nothing(station: Station) -> None:
    station.watches.create(ANN, HOUR)
    buried = WatchRuns(station.database, OwnProcess.alone("boot_1", clock=station.clock), may_claim=lambda _: False)

    assert buried.claim() is None


def test_a_change_fences_the_run_that_is_under_way(station: Station) -> None:
    watch = station.watches.create(ANN, HOUR)
    claimed = station.claimed()
    station.watches.update(watch.id, WatchTerms(question="Another?"), principal=ANN)
    assert not station.runs.finish(claimed, WatchLook(state="current", looked=True, presented=(), answer=ANSWER))
    assert station.get(watch).answer is None

    claimed = station.claimed()
    station.watches.delete(watch.id, principal=ANN)
    assert not station.runs.finish(claimed, WatchLook(state="current", event=event_of()))


def test_the_newest_events_are_kept(database: Database) -> None:
    station = Station(database, events_kept=2)
    watch = station.watches.create(ANN, HOUR)
    for number in range(4):
        claimed = station.claimed()
        assert station.runs.finish(claimed, WatchLook(state="current", looked=True, event=event_of(number)))
        station.now += 3600
    first, cursor = station.watches.events(watch.id, principal=ANN, limit=1)
    second, end = station.watches.events(watch.id, principal=ANN, limit=1, cursor=cursor)

    assert [one.after["id"] for one in (*first, *second)] == ["req_3", "req_2"]
    assert end is None


def test_an_event_waits_for_its_delivery_and_is_given_up(station: Station) -> None:
    station.watches.create(ANN, HOUR)
    claimed = station.claimed()
    assert station.runs.finish(claimed, WatchLook(state="current", looked=True, event=event_of(deliver=True)))
    (waiting,) = station.deliveries.due(limit=9)
    assert (waiting.tenant_id, waiting.attempts) == ("t1", 0)

    station.deliveries.note(waiting, delivered=False, again_s=10.0)
    assert station.deliveries.due(limit=9) == ()
    station.now += 10
    (again,) = station.deliveries.due(limit=9)
    assert again.attempts == 1
    station.deliveries.note(again, delivered=False)
    station.now += 1e6
    assert station.deliveries.due(limit=9) == ()


def changes_of(database: Database) -> list[Any]:
    with database.read() as connection:
        return list(connection.execute(sa.select(scope_change.c.document_id)).scalars())


def test_changes_are_noted_where_the_tenant_watches_for_them(station: Station) -> None:
    library = Library(station.database)
    library.index("Nobody watches yet.")
    station.watches.create(STRANGER, WatchTerms(question="x", on_change=True))
    station.watches.create(ANN, HOUR)
    library.index("Others watch, and Ann by the hour.")
    assert changes_of(station.database) == []

    station.watches.create(ANN, WatchTerms(question="x", on_change=True))
    document = library.index("Ann watches.")
    library.index_again(document, "Ann watches still.")
    library.documents.update_metadata(document.id, {"year": 2024}, tenant_id="t1")
    library.documents.delete(document.id, tenant_id="t1")
    assert changes_of(station.database) == [document.id] * 4


def test_a_change_makes_the_watches_due_whose_scope_it_is_in(station: Station) -> None:
    library = Library(station.database)
    other = CollectionRepository(station.database).create("t1", "other").id
    document = library.index("The fee.", metadata={"year": 2024})
    scopes = {
        "all": WatchScope(),
        "collection": WatchScope(collection_ids=(library.collection_id,)),
        "document": WatchScope(document_ids=(document.id,)),
        "filter": WatchScope(filter={"year": 2024}),
        "other collection": WatchScope(collection_ids=(other,)),
        "other document": WatchScope(document_ids=("doc_9",)),
        "other filter": WatchScope(filter={"year": 2025}),
    }
    made = {
        name: station.watches.create(ANN, WatchTerms(question=name, on_change=True, scope=scope))
        for name, scope in scopes.items()
    }
    while (claimed := station.runs.claim()) is not None:
        station.runs.finish(claimed, WatchLook(state="current", looked=True, presented=(), answer=ANSWER))
    assert {station.get(one).due_at for one in made.values()} == {station.now + DAY_S}

    station.now += 1000
    library.index_again(document, "The fee is another.")
    assert station.changes.spread() == 4
    due = {name for name, one in made.items() if station.get(one).due_at == station.now + SETTLING_S}
    assert due == {"all", "collection", "document", "filter"}
    assert changes_of(station.database) == []
    assert station.changes.spread() == 0


def test_a_document_that_left_the_filter_counts_if_the_answer_was_made_from_it(station: Station) -> None:
    library = Library(station.database)
    document, another = (library.index(text, metadata={"year": 2024}) for text in ("The fee.", "The term."))
    terms = WatchTerms(question="x", on_change=True, scope=WatchScope(filter={"year": 2024}))
    watch = station.watches.create(ANN, terms)
    claimed, presented = station.claimed(), [(document.id, 1, 0, 8)]
    station.runs.finish(claimed, WatchLook(state="current", looked=True, presented=presented, answer=ANSWER))

    library.documents.update_metadata(another.id, {"year": 2025}, tenant_id="t1")
    assert station.changes.spread() == 0
    library.documents.update_metadata(document.id, {"year": 2025}, tenant_id="t1")
    assert station.changes.spread() == 1
    assert station.get(watch).due_at == station.now + LEAST_S, "two looks are so far apart"


def test_a_change_while_a_watch_is_looked_at_is_looked_at_next(station: Station) -> None:
    library = Library(station.database)
    watch = station.watches.create(ANN, WatchTerms(question="x", on_change=True))
    claimed = station.claimed()
    library.index("Ingested meanwhile.")
    assert station.changes.spread() == 1
    assert station.runs.finish(claimed, WatchLook(state="current", looked=True, presented=(), answer=ANSWER))

    assert station.get(watch).due_at == station.now + LEAST_S
    station.now += LEAST_S
    station.look(watch)
    assert station.get(watch).due_at == station.now + DAY_S


def test_processes_share_the_changes(station: Station) -> None:
    library = Library(station.database)
    watch = station.watches.create(ANN, WatchTerms(question="x", on_change=True))
    station.look(watch)
    station.now += 1000
    for number in range(5):
        library.index(f"Document {number}.")
    told: list[int] = []

    def spread(number: int) -> None:
        own = OwnProcess.alone(f"boot_{number}", clock=station.clock)
        told.append(WatchChanges(station.database, own, least_s=LEAST_S).spread())

    threads = [threading.Thread(target=spread, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(told) >= 1
    assert changes_of(station.database) == []
    assert station.get(watch).due_at == station.now + SETTLING_S


def test_a_change_never_puts_off_what_is_due_before(station: Station) -> None:
    watch = station.watches.create(ANN, WatchTerms(question="x", on_change=True))
    Library(station.database).index("Ingested.")
    assert station.changes.spread() == 1

    assert station.get(watch).due_at == 1000.0


def test_a_paused_watch_is_not_made_due(station: Station) -> None:
    watch = station.watches.create(ANN, WatchTerms(question="x", on_change=True, paused=True))
    Library(station.database).index("Ingested.")

    assert station.changes.spread() == 0
    assert station.get(watch).due_at is None
