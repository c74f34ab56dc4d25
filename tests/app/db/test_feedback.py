"""Feedback is readable by its author and administrators, replaced by newer feedback, deleted with its conversation."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.db.conversations import ConversationRepository
from app.db.feedback import FeedbackRepository
from app.db.session import Database
from app.db.tables.answers import feedback as table
from app.errors import InvalidRequest, NotFound
from app.types import Principal, Role, Turn
from app.usage.ledger.ledger import Ledger
from tests.app.usage.samples import reservation

ANN = Principal("t1", "ann", "key_a", Role.READER)
LIMITED = Principal("t1", "ann", "key_l", Role.READER, collections=("col_1",))
BEN = Principal("t1", "ben", "key_b", Role.MEMBER)
ADMIN = Principal("t1", "root", "key_r", Role.ADMIN)
LIMITED_ADMIN = Principal("t1", "root", "key_m", Role.ADMIN, collections=("col_1",))
RIVAL = Principal("t2", "ann", "key_x", Role.ADMIN)


@pytest.fixture
def feedback(database: Database) -> FeedbackRepository:
    ticks = itertools.count(1000)
    return FeedbackRepository(database, clock=lambda: float(next(ticks)))


Asking = Callable[..., str]


@pytest.fixture
def ask(database: Database) -> Asking:
    """A function that writes an answer's call into the ledger as a principal's, and returns its request."""
    ledger, numbers = Ledger(database, boot_id="boot"), itertools.count(1)

    def ask(principal: Principal, *, endpoint: str = "ask") -> str:
        request_id = f"req_{next(numbers)}"
        ledger.reserve(replace(reservation(f"{request_id}:1"), principal=principal, endpoint=endpoint))
        return request_id

    return ask


def turn(request_id: str) -> Turn:
    return Turn(
        request_id=request_id,
        question=f"Question of {request_id}?",
        standalone=None,
        answer="Blue.",
        answered=True,
        citations=(),
    )


def rows(database: Database) -> list[tuple[str, str, float]]:
    query = sa.select(table.c.request_id, table.c.user_id, table.c.score).order_by(table.c.request_id, table.c.user_id)
    with database.read() as connection:
        return [(row[0], row[1], row[2]) for row in connection.execute(query)]


def test_what_is_said_is_kept_as_it_was_said(feedback: FeedbackRepository, ask: Asking) -> None:
    request_id = ask(ANN)
    said, new = feedback.put(request_id, principal=ANN, score=-0.25, comment="Ä: the wrong year.")

    assert new
    assert (said.request_id, said.tenant_id, said.user_id) == (request_id, "t1", "ann")
    assert (said.score, said.comment, said.created_at, said.updated_at) == (-0.25, "Ä: the wrong year.", 1000, 1000)
    (listed,) = feedback.list(tenant_id="t1", limit=10)[0]
    assert (listed.score, listed.comment, listed.conversation_id, listed.question) == (
        -0.25,
        "Ä: the wrong year.",
        None,
        None,
    )


def test_new_feedback_replaces_the_old_and_keeps_its_creation_time(
    feedback: FeedbackRepository, ask: Asking, database: Database
) -> None:
    first, second = ask(ANN), ask(ANN)
    feedback.put(first, principal=ANN, score=1, comment="Fine.")
    feedback.put(second, principal=ANN, score=1)
    said, new = feedback.put(first, principal=ANN, score=-1)

    assert not new
    assert (said.score, said.comment, said.created_at, said.updated_at) == (-1, None, 1000, 1002)
    assert rows(database) == [(first, "ann", -1), (second, "ann", 1)]
    assert [one.request_id for one in feedback.list(tenant_id="t1", limit=10)[0]] == [second, first]


def test_each_user_has_one_feedback_and_withdraws_only_their_own(
    feedback: FeedbackRepository, ask: Asking, database: Database
) -> None:
    request_id = ask(ANN)
    feedback.put(request_id, principal=ANN, score=1)
    feedback.put(request_id, principal=ADMIN, score=-1)
    assert rows(database) == [(request_id, "ann", 1), (request_id, "root", -1)]

    for _ in range(2):  # where nothing was said, nothing changes
        feedback.withdraw(request_id, principal=ANN)
        assert rows(database) == [(request_id, "root", -1)]


@pytest.mark.parametrize(
    ("asker", "others", "speakers"),
    [
        (ANN, (BEN, RIVAL, LIMITED, LIMITED_ADMIN), (ANN, ADMIN)),
        (LIMITED, (BEN, RIVAL, LIMITED_ADMIN), (LIMITED, ANN, ADMIN)),
    ],
    ids=["a user's", "a limited key's"],
)
@pytest.mark.parametrize("kept", [False, True], ids=["in the ledger", "in a conversation"])
def test_others_answers_do_not_exist(
    feedback: FeedbackRepository,
    ask: Asking,
    database: Database,
    asker: Principal,
    others: tuple[Principal, ...],
    speakers: tuple[Principal, ...],
    kept: bool,
) -> None:
    if kept:  # no model was called for it, so the ledger does not know it
        conversations = ConversationRepository(database)
        request_id = "req_kept"
        conversations.append(conversations.create(asker).id, turn(request_id))
    else:
        request_id = ask(asker)
    for other in others:
        with pytest.raises(NotFound, match="no such answer"):
            feedback.put(request_id, principal=other, score=1)
        with pytest.raises(NotFound, match="no such answer"):
            feedback.withdraw(request_id, principal=other)
    assert rows(database) == []

    for speaker in speakers:
        feedback.put(request_id, principal=speaker, score=1)
    assert {user for _, user, _ in rows(database)} == {speaker.user_id for speaker in speakers}


def test_a_shared_answer_is_read_and_not_judged(feedback: FeedbackRepository, database: Database) -> None:
    conversations = ConversationRepository(database)
    made = conversations.create(ANN)
    conversations.append(made.id, turn("req_1"))
    conversations.update(made.id, principal=ANN, shared=True)

    with pytest.raises(NotFound):
        feedback.put("req_1", principal=BEN, score=1)


@pytest.mark.parametrize("endpoint", ["search", "embeddings", "ingest", "vector_stores.search"])
def test_what_is_no_answer_has_no_feedback(feedback: FeedbackRepository, ask: Asking, endpoint: str) -> None:
    with pytest.raises(NotFound):
        feedback.put(ask(ANN, endpoint=endpoint), principal=ADMIN, score=1)
    feedback.put(ask(ANN, endpoint="chat.completions"), principal=ANN, score=1)


def test_an_unknown_answer_is_not_there(feedback: FeedbackRepository) -> None:
    for principal in (ANN, ADMIN):
        with pytest.raises(NotFound):
            feedback.put("req_nowhere", principal=principal, score=1)


@pytest.mark.parametrize(("comment", "kept"), [("", None), (" \n", None), (None, None), (" a ", " a ")])
def test_a_blank_comment_is_none(
    feedback: FeedbackRepository, ask: Asking, comment: str | None, kept: str | None
) -> None:
    assert feedback.put(ask(ANN), principal=ANN, score=0, comment=comment)[0].comment == kept


@pytest.mark.parametrize("comment", ["a\0b", "a\ud800"])
def test_a_comment_that_no_database_takes_is_refused(
    feedback: FeedbackRepository, ask: Asking, database: Database, comment: str
) -> None:
    with pytest.raises(InvalidRequest, match="comment"):
        feedback.put(ask(ANN), principal=ANN, score=0, comment=comment)
    assert rows(database) == []


def test_a_score_beyond_the_scale_is_refused_by_the_database_too(database: Database, ask: Asking) -> None:
    FeedbackRepository(database).put(ask(ANN), principal=ANN, score=1)
    with pytest.raises(sa.exc.IntegrityError), database.write() as connection:
        connection.execute(sa.update(table).values(score=1.5))


def test_a_conversation_tells_each_what_they_said_of_its_answers(
    feedback: FeedbackRepository, database: Database
) -> None:
    conversations = ConversationRepository(database)
    made, other = conversations.create(ANN), conversations.create(ANN)
    for request_id, conversation in (("req_1", made), ("req_2", made), ("req_3", other)):
        conversations.append(conversation.id, turn(request_id))
        feedback.put(request_id, principal=ANN, score=1)
    feedback.put("req_2", principal=ADMIN, score=-1, comment="No.")

    told = feedback.of_conversation(made.id, principal=ANN)
    assert {request_id: said.score for request_id, said in told.items()} == {"req_1": 1, "req_2": 1}
    told = feedback.of_conversation(made.id, principal=ADMIN)
    assert {request_id: (said.score, said.comment) for request_id, said in told.items()} == {"req_2": (-1, "No.")}
    assert feedback.of_conversation(made.id, principal=BEN) == {}


def test_the_list_is_the_tenants_with_the_conversation_and_the_question(
    feedback: FeedbackRepository, ask: Asking, database: Database
) -> None:
    conversations = ConversationRepository(database)
    made = conversations.create(ANN)
    kept, alone, theirs = ask(ANN), ask(BEN), ask(RIVAL)
    conversations.append(made.id, turn(kept))
    for request_id, principal in ((kept, ANN), (alone, BEN), (theirs, RIVAL)):
        feedback.put(request_id, principal=principal, score=1)

    found, cursor = feedback.list(tenant_id="t1", limit=10)
    assert cursor is None
    assert [(one.request_id, one.user_id, one.conversation_id, one.question) for one in found] == [
        (alone, "ben", None, None),
        (kept, "ann", made.id, f"Question of {kept}?"),
    ]


def test_the_list_pages_through_the_newest_first_also_within_one_moment(database: Database, ask: Asking) -> None:
    still = FeedbackRepository(database, clock=lambda: 7.0)
    asked = [ask(ANN) for _ in range(4)]
    for number, request_id in enumerate(asked):
        still.put(request_id, principal=ANN, score=(-1, 1)[number % 2])
    still.put(asked[0], principal=ADMIN, score=-0.5)

    pages, cursor = [], None
    while True:
        page, cursor = still.list(tenant_id="t1", limit=2, cursor=cursor)
        pages.append([(one.request_id, one.user_id) for one in page])
        if cursor is None:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    expected = sorted([*((one, "ann") for one in asked), (asked[0], "root")], reverse=True)
    assert [one for page in pages for one in page] == expected
    below = [(one.request_id, one.score) for one in still.list(tenant_id="t1", limit=9, score_below=0)[0]]
    assert below == [(asked[2], -1), (asked[0], -0.5), (asked[0], -1)]
    assert len(still.list(tenant_id="t1", limit=9, score_below=-0.5)[0]) == 2


@pytest.mark.parametrize("cursor", ["", "nonsense", "W10", "WzEsICJhIl0"])
def test_a_cursor_from_elsewhere_is_refused(feedback: FeedbackRepository, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        feedback.list(tenant_id="t1", limit=1, cursor=cursor)


def test_a_conversation_takes_its_feedback_along(feedback: FeedbackRepository, ask: Asking, database: Database) -> None:
    conversations = ConversationRepository(database)
    made, other = conversations.create(ANN), conversations.create(ANN)
    gone, stays, alone = ask(ANN), ask(ANN), ask(ANN)
    conversations.append(made.id, turn(gone))
    conversations.append(other.id, turn(stays))
    for request_id in (gone, stays, alone):
        feedback.put(request_id, principal=ANN, score=-1, comment="Secret.")
    feedback.put(gone, principal=ADMIN, score=1)
    conversations.delete(made.id, principal=ANN)

    assert [request_id for request_id, _, _ in rows(database)] == [stays, alone]


def test_concurrent_feedback_of_one_user_on_one_answer_is_one_row(
    feedback: FeedbackRepository, ask: Asking, database: Database
) -> None:
    request_id, together = ask(ANN), threading.Barrier(8)

    def say(number: int) -> float:
        together.wait(30)
        return feedback.put(request_id, principal=ANN, score=number / 8)[0].score

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(say, range(8))) == [number / 8 for number in range(8)]
    assert len(rows(database)) == 1
