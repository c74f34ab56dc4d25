"""Conversations belong to the user that began them, store each turn once, and are deleted for good."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.db.conversations import ConversationRepository
from app.db.session import Database
from app.db.tables.documents import conversation_turn
from app.errors import Conflict, Forbidden, InvalidRequest, NotFound
from app.types import Principal, Role, Turn

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)
LIMITED = Principal("t1", "ann", "key_l", Role.READER, collections=("col_1",))
BEN = Principal("t1", "ben", "key_b", Role.MEMBER)
ADMIN = Principal("t1", "root", "key_r", Role.ADMIN)
RIVAL = Principal("t2", "ann", "key_x", Role.ADMIN)


@pytest.fixture
def conversations(database: Database) -> ConversationRepository:
    ticks = itertools.count(1000)
    return ConversationRepository(database, clock=lambda: float(next(ticks)))


def turn(number: int, *, standalone: str | None = None, answer: str = "Twelve percent [1].") -> Turn:
    return Turn(
        request_id=f"req_{number}",
        question=f"Question {number}?",
        standalone=standalone,
        answer=answer,
        answered=True,
        citations=({"index": 1, "cited_text": "It rose 12 %.", "support": 0.93, "page_start": None},),
    )


def test_a_new_conversation_has_no_turns_and_can_be_read(conversations: ConversationRepository) -> None:
    made = conversations.create(ANN, title="Report", metadata={"team": "a"})

    assert made.id.startswith("conv_")
    assert (made.title, made.metadata, made.turns, made.created_at) == ("Report", {"team": "a"}, 0, made.updated_at)
    assert conversations.get(made.id, principal=ANN) == made
    assert conversations.turns(made.id, principal=ANN) == ()


def test_a_user_may_have_so_many_conversations_and_others_are_not_counted(database: Database) -> None:
    conversations = ConversationRepository(database, most=2)
    first = conversations.create(ANN)
    for principal in (LIMITED, BEN, BEN, RIVAL, RIVAL):
        conversations.create(principal)

    for principal in (ANN, LIMITED, BEN, RIVAL):
        with pytest.raises(Conflict, match="You have 2 conversations, the most that a user may have"):
            conversations.create(principal)
    conversations.delete(first.id, principal=ANN)
    conversations.create(LIMITED)


def test_turns_come_back_as_they_were_told_and_in_order(conversations: ConversationRepository) -> None:
    made = conversations.create(ANN)
    for number in range(1, 5):
        assert conversations.append(made.id, turn(number, standalone=f"Which {number}?" if number > 1 else None))

    turns = conversations.turns(made.id, principal=ANN)
    assert [kept.ordinal for kept in turns] == [1, 2, 3, 4]
    assert [kept.standalone for kept in turns] == [None, "Which 2?", "Which 3?", "Which 4?"]
    assert turns[0].citations == turn(1).citations
    assert [kept.request_id for kept in conversations.turns(made.id, principal=ANN, newest=2)] == ["req_3", "req_4"]
    found = conversations.get(made.id, principal=ANN)
    assert (found.turns, found.title) == (4, "Question 1?")
    assert found.updated_at == turns[-1].created_at > made.updated_at


def test_a_title_that_was_given_stays_and_a_long_question_is_cut(conversations: ConversationRepository) -> None:
    named, unnamed = conversations.create(ANN, title="Mine"), conversations.create(ANN)
    long = Turn(request_id="r", question="why " * 100, standalone=None, answer="", answered=False, citations=())
    conversations.append(named.id, turn(1))
    conversations.append(unnamed.id, long)

    assert conversations.get(named.id, principal=ANN).title == "Mine"
    assert conversations.get(unnamed.id, principal=ANN).title == ("why " * 100)[:80]


def test_a_turn_is_kept_once(conversations: ConversationRepository) -> None:
    made = conversations.create(ANN)

    assert [conversations.append(made.id, turn(1)) for _ in range(2)] == [True, False]
    assert len(conversations.turns(made.id, principal=ANN)) == 1


def test_turns_that_end_together_are_all_kept(conversations: ConversationRepository) -> None:
    made = conversations.create(ANN)
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(lambda number: conversations.append(made.id, turn(number)), range(24)))

    turns = conversations.turns(made.id, principal=ANN)
    assert all(kept)
    assert [one.ordinal for one in turns] == list(range(1, 25))
    assert {one.request_id for one in turns} == {f"req_{number}" for number in range(24)}


@pytest.mark.parametrize(
    ("owner", "others", "seers"),
    [(ANN, (BEN, RIVAL, LIMITED), (ANN, ADMIN)), (LIMITED, (BEN, RIVAL), (LIMITED, ANN, ADMIN))],
    ids=["a user's", "a limited key's"],
)
def test_others_conversations_do_not_exist(
    conversations: ConversationRepository,
    owner: Principal,
    others: tuple[Principal, ...],
    seers: tuple[Principal, ...],
) -> None:
    made = conversations.create(owner)
    calls: tuple[Callable[..., object], ...] = (
        conversations.get,
        conversations.turns,
        conversations.require_open,
        conversations.delete,
    )
    for other in others:
        for call in calls:
            with pytest.raises(NotFound):
                call(made.id, principal=other)
        assert conversations.list(other, limit=10) == ((), None)
    for seer in seers:
        assert conversations.get(made.id, principal=seer).id == made.id
        assert [one.id for one in conversations.list(seer, limit=10)[0]] == [made.id]


def test_a_shared_conversation_is_read_by_the_tenant_and_changed_by_its_owner(
    conversations: ConversationRepository,
) -> None:
    made = conversations.create(ANN)
    conversations.append(made.id, turn(1))
    shared = conversations.update(made.id, principal=ANN, shared=True)

    assert shared.shared
    assert conversations.get(made.id, principal=BEN) == shared
    assert [kept.request_id for kept in conversations.turns(made.id, principal=BEN)] == ["req_1"]
    assert conversations.list(BEN, limit=10) == ((), None)  # whoever has its id, and nobody finds it otherwise
    changes: tuple[Callable[..., object], ...] = (
        conversations.require_open,
        conversations.delete,
        conversations.update,
    )
    for change in changes:
        with pytest.raises(Forbidden):
            change(made.id, principal=BEN)
        for stranger in (RIVAL, LIMITED):
            with pytest.raises(NotFound):
                change(made.id, principal=stranger)
    for stranger in (RIVAL, LIMITED):
        for read in (conversations.get, conversations.turns):
            with pytest.raises(NotFound):
                read(made.id, principal=stranger)

    conversations.update(made.id, principal=ADMIN, shared=False)
    with pytest.raises(NotFound):
        conversations.get(made.id, principal=BEN)


def test_changes_leave_the_rest_and_the_order_as_they_are(conversations: ConversationRepository) -> None:
    made = conversations.create(ANN, title="First", metadata={"team": "a"})

    assert conversations.update(made.id, principal=ANN) == made
    assert conversations.update(made.id, principal=ANN, title="Second").title == "Second"
    changed = conversations.update(made.id, principal=ANN, metadata={})
    assert (changed.title, changed.metadata, changed.shared) == ("Second", {}, False)
    assert (changed.created_at, changed.updated_at) == (made.created_at, made.updated_at)
    with pytest.raises(InvalidRequest):
        conversations.update(made.id, principal=ANN, title="a\0b")
    with pytest.raises(InvalidRequest):
        conversations.update(made.id, principal=ANN, metadata={"x": 1 << 64})


def test_how_an_answer_was_made_comes_back_or_was_never_kept(conversations: ConversationRepository) -> None:
    made, making = conversations.create(ANN), {"model": "m", "timings_ms": {"total": 1.5, "queue": None}}
    conversations.append(made.id, turn(1))
    conversations.append(made.id, replace(turn(2), making=making))

    assert [kept.making for kept in conversations.turns(made.id, principal=ANN)] == [None, making]


def test_only_the_limited_key_that_began_a_conversation_goes_on_with_it(conversations: ConversationRepository) -> None:
    made = conversations.create(LIMITED)
    conversations.require_open(made.id, principal=LIMITED)

    for other in (ANN, ADMIN):
        with pytest.raises(Conflict):
            conversations.require_open(made.id, principal=other)


def test_deleting_is_final_for_what_ends_later_too(conversations: ConversationRepository, database: Database) -> None:
    made, other = conversations.create(ANN), conversations.create(ANN)
    conversations.append(made.id, turn(1))
    conversations.append(other.id, turn(2))
    conversations.delete(made.id, principal=ANN)

    assert conversations.append(made.id, turn(3)) is False
    with pytest.raises(NotFound):
        conversations.delete(made.id, principal=ANN)
    with database.read() as connection:
        left = connection.execute(sa.select(conversation_turn.c.request_id)).scalars().all()
    assert left == ["req_2"]


def test_the_list_pages_through_the_newest_first(conversations: ConversationRepository) -> None:
    made = [conversations.create(ANN).id for _ in range(5)]
    conversations.append(made[0], turn(1))  # a turn does not move its conversation while somebody pages

    pages, cursor = [], None
    while True:
        page, cursor = conversations.list(ANN, limit=2, cursor=cursor)
        pages.append([one.id for one in page])
        if cursor is None:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [one for page in pages for one in page] == made[::-1]


@pytest.mark.parametrize("cursor", ["", "nonsense", "W10"])
def test_a_cursor_from_elsewhere_is_refused(conversations: ConversationRepository, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        conversations.list(ANN, limit=1, cursor=cursor)


def test_what_no_database_takes_is_refused_of_people_and_replaced_of_models(
    conversations: ConversationRepository,
) -> None:
    with pytest.raises(InvalidRequest):
        conversations.create(ANN, title="a\0b")
    with pytest.raises(InvalidRequest):
        conversations.create(ANN, metadata={"x": 1 << 64})
    made = conversations.create(ANN)
    conversations.append(made.id, turn(1, answer="a\0b\ud800"))

    assert conversations.turns(made.id, principal=ANN)[0].answer == "a\ufffdb\ufffd"
