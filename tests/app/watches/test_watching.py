"""app.watches.watching: a watch is asked if other passages are presented, and tells what differs; access is anew."""

from threading import Event

from app.db.collections import CollectionRepository
from app.db.watches import WatchBudget, WatchScope, WatchTerms
from app.errors import StoreUnavailable
from app.types import Operation, Principal, Role
from tests.app.watches.desk import FEE, NOON, PETS, QUESTION, RAISED, Desk


def test_the_first_answer_is_kept_and_makes_no_event(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE, PETS)
    assert desk.work() == 1

    found = desk.again(watch)
    assert (found.state, found.looked_at, found.due_at) == ("current", desk.now, desk.now + 3600)
    assert found.answer is not None
    assert found.answer["answered"]
    assert {one["cited_text"] for one in found.answer["citations"]} == {FEE}
    assert found.presented is not None
    assert {place[:2] for place in found.presented} == {("doc_1", 1), ("doc_2", 1)}
    assert desk.events(watch) == ()


def test_the_same_passages_are_not_asked_again_and_cost_nothing(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE, PETS)
    desk.work()
    before, rows = desk.again(watch), desk.rows()
    assert rows, "the first answer is on the ledger"
    assert desk.work(later=3600) == 1

    after = desk.again(watch)
    assert after.answer == before.answer, "with the id of its request"
    assert after.looked_at == desk.now
    assert after.used_tokens == before.used_tokens
    assert len(desk.rows()) == len(rows), "its question is embedded already"


def test_another_number_is_an_event_with_both_answers_and_the_passages(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE, PETS)
    desk.work()
    desk.shelf.put(RAISED, PETS, version=2)
    desk.work(later=3600)

    (event,) = desk.events(watch)
    (found,) = event.differences
    assert event.question == QUESTION
    assert event.after == desk.again(watch).answer
    assert event.before["id"] != event.after["id"]
    assert found["kinds"] == ["number"]
    assert (found["before"]["cited_text"], found["before"]["version"]) == (FEE, 1)
    assert (found["after"]["cited_text"], found["after"]["version"]) == (RAISED, 2)
    paid = {row.request_id for row in desk.rows()}
    assert {event.before["id"], event.after["id"]} <= paid, "both are billed"
    assert {row.key_id for row in desk.rows()} == {desk.key.id}


def test_another_version_or_wording_is_asked_and_makes_no_event(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE)
    desk.work()
    first = desk.again(watch).answer
    desk.shelf.put("A parking space has a fee of thirty euros a month.", version=2)
    desk.work(later=3600)

    second = desk.again(watch).answer
    assert first is not None
    assert second is not None
    assert second["id"] != first["id"]
    assert desk.events(watch) == ()


def test_an_answer_after_none_is_an_event_and_so_is_the_loss_of_one(desk: Desk) -> None:
    watch = desk.watch()
    desk.work()
    assert not (desk.again(watch).answer or {})["answered"]
    desk.shelf.put(FEE)
    desk.work(later=3600)
    desk.shelf.put()
    desk.work(later=3600)

    lost, won = desk.events(watch)
    assert [one["kinds"] for one in won.differences] == [["answered"], ["passage"]]
    assert [one["kinds"] for one in lost.differences] == [["answered"], ["passage"]]


def test_a_language_model_is_called_only_where_other_passages_are_presented(desk: Desk) -> None:
    engine = desk.generating("The fee is 30 euros a month [1].")
    watch = desk.watch()
    desk.shelf.put(FEE, PETS)
    desk.work()
    desk.work(later=3600)
    assert len(engine.requests) == 1

    desk.shelf.put(RAISED, PETS, version=2)
    engine.says = "It is 35 euros a month [1]."
    desk.work(later=3600)
    desk.work(later=3600)
    (event,) = desk.events(watch)
    assert len(engine.requests) == 2
    assert [one["kinds"] for one in event.differences] == [["number"]]
    calls = [row for row in desk.rows() if row.operation is Operation.CHAT]
    assert {row.request_id for row in calls} == {event.before["id"], event.after["id"]}
    assert {row.key_id for row in calls} == {desk.key.id}
    assert desk.again(watch).used_tokens == sum(row.input_tokens + row.output_tokens for row in desk.rows())


def test_a_revoked_key_does_not_ask_and_the_state_says_why(desk: Desk) -> None:
    watch = desk.watch()
    desk.state.access.keys.revoke(desk.key.id, tenant_id="acme")
    desk.shelf.put(FEE)
    desk.work()

    found = desk.again(watch)
    assert (found.state, found.state_detail, found.answer) == ("no_access", "The key is revoked.", None)
    assert found.due_at == desk.now + 3600
    assert desk.shelf.scopes == []
    assert desk.rows() == []


def test_an_expired_key_and_a_disabled_user_do_not_ask(desk: Desk) -> None:
    watch, signed_in = desk.watch(), desk.watch(desk.signed_in)
    desk.state.access.keys.update(desk.key.id, tenant_id="acme", expires_at=desk.now - 1)
    desk.shelf.put(FEE)
    desk.work()
    assert desk.again(watch).state_detail == "The key has expired."
    assert desk.again(signed_in).state == "current"

    desk.state.access.users.update("ann", tenant_id="acme", disabled=True, record=lambda *_: None)
    desk.work(later=3600)
    assert {desk.again(one).state_detail for one in (watch, signed_in)} == {"The user is disabled."}


def test_a_key_that_lost_a_collection_does_not_ask_of_it_and_asks_again_when_it_has_it(desk: Desk) -> None:
    collections = CollectionRepository(desk.state.database)
    own, other = collections.create("acme", "own"), collections.create("acme", "other")
    keys = desk.state.access.keys
    keys.update(desk.key.id, tenant_id="acme", collections=(own.id,))
    limited = Principal("acme", "ann", desk.key.id, Role.READER, (own.id,))
    named, whole = desk.watch(limited, scope=WatchScope(collection_ids=(own.id,))), desk.watch(limited)
    desk.shelf.put(FEE)
    desk.work()
    assert [scope.collection_ids for scope in desk.shelf.scopes] == [(own.id,)] * 2

    keys.update(desk.key.id, tenant_id="acme", collections=(other.id,))
    desk.work(later=3600)
    assert (desk.again(named).state, desk.again(named).state_detail) == ("no_access", "There is no such collection.")
    assert desk.again(whole).state == "current"
    assert desk.shelf.scopes[2:] == [desk.shelf.scopes[2]]
    assert desk.shelf.scopes[2].collection_ids == (other.id,)

    keys.update(desk.key.id, tenant_id="acme", collections=None)
    desk.work(later=3600)
    assert (desk.again(named).state, desk.again(named).state_detail) == ("current", None)


def test_a_failure_is_told_and_tried_again_later_each_time(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.failing = StoreUnavailable("The database is busy.")
    pauses = []
    for _ in range(3):
        desk.work()
        found = desk.again(watch)
        assert found.due_at is not None
        pauses.append(found.due_at - desk.now)
        desk.now = found.due_at
    assert pauses == [60.0, 120.0, 240.0]
    assert (found.state, found.state_detail, found.failures) == ("failing", "The database is busy.", 3)

    desk.shelf.failing = RuntimeError("/a/path of ours")
    desk.work()
    assert desk.again(watch).state_detail == "The question could not be answered; it is tried again."

    desk.shelf.failing = None
    desk.work(later=3600)
    assert (desk.again(watch).state, desk.again(watch).failures) == ("current", 0)


def test_the_watches_own_budget_ends_with_its_period(desk: Desk) -> None:
    watch = desk.watch(budget=WatchBudget(1, "day"))
    desk.shelf.put(FEE)
    desk.work()
    used = desk.again(watch).used_tokens
    assert used == sum(row.input_tokens + row.output_tokens for row in desk.rows()) > 1
    desk.shelf.put(RAISED, version=2)
    desk.work(later=3600)

    found = desk.again(watch)
    assert (found.state, found.used_tokens) == ("over_budget", used)
    assert found.state_detail == "Its budget of 1 tokens for this day is used up."
    assert found.due_at is not None
    assert found.due_at % 86_400 == 0, "the next day begins"
    assert desk.events(watch) == ()

    desk.now = found.due_at
    desk.work()
    assert desk.again(watch).state == "current"
    assert len(desk.events(watch)) == 1


def test_a_budget_of_the_key_is_obeyed(desk: Desk) -> None:
    watch = desk.watch()
    desk.state.usage.budgets.create(
        Principal("acme", "root", "key_root", Role.ADMIN),
        scope_type="key",
        scope_id=desk.key.id,
        unit="tokens",
        limit=0,
        period="total",
        tz="UTC",
        enforcement="hard",
    )
    desk.shelf.put(FEE)
    desk.work()

    assert desk.again(watch).state == "over_budget"
    assert desk.rows() == []


def test_a_run_is_thrown_away_where_the_watch_is_changed_meanwhile(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE)
    claimed = desk.runs.claim()
    assert claimed is not None
    desk.watches.update(watch.id, WatchTerms(every_s=7200), principal=desk.ann)
    look = desk.watching().look(claimed, desk.answerer)
    assert look.answer is not None
    assert not desk.runs.finish(claimed, look)
    found = desk.again(watch)
    assert (found.every_s, found.answer, found.looked_at) == (7200, None, None)

    desk.work()
    assert desk.again(watch).answer is not None


def test_a_run_is_thrown_away_where_the_watch_is_deleted_meanwhile(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE)
    desk.shelf.before = lambda: desk.watches.delete(watch.id, principal=desk.ann)

    assert desk.work() == 1
    assert desk.watches.list(desk.ann, limit=10) == ((), None)


def test_another_question_begins_without_an_answer(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE)
    desk.work()
    desk.watches.update(watch.id, WatchTerms(question="Are pets allowed, in euros?"), principal=desk.ann)
    assert (desk.again(watch).answer, desk.again(watch).state) == (None, "waiting")
    desk.shelf.put(RAISED)
    desk.work(later=60)

    assert desk.again(watch).answer is not None
    assert desk.events(watch) == ()


def test_a_stopped_run_leaves_the_watch_due(desk: Desk) -> None:
    watch = desk.watch()
    desk.shelf.put(FEE)
    searching, ended = Event(), Event()

    def before() -> None:
        searching.set()
        assert ended.wait(10)

    def stopping() -> bool:
        if searching.is_set():
            ended.set()
        return searching.is_set()

    desk.shelf.before = before
    assert desk.runner().work(stopping=stopping) == 1
    found = desk.again(watch)
    assert (found.answer, found.due_at, found.state) == (None, NOON, "waiting")

    desk.shelf.before = lambda: None
    assert desk.work() == 1
    assert desk.again(watch).answer is not None
