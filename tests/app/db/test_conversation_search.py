"""Conversations are found by what is in their titles, questions and answers, and only by those who may list them."""

import itertools

import pytest

from app.db.conversations import ConversationRepository
from app.db.session import Database
from app.errors import InvalidRequest
from app.types import Principal, Turn
from tests.app.db.test_conversations import ADMIN, ANN, BEN, LIMITED, RIVAL


@pytest.fixture
def conversations(database: Database) -> ConversationRepository:
    ticks = itertools.count(1000)
    return ConversationRepository(database, clock=lambda: float(next(ticks)))


def begun(
    conversations: ConversationRepository,
    principal: Principal,
    *turns: tuple[str, str],
    title: str | None = None,
) -> str:
    made = conversations.create(principal, title=title)
    for number, (question, answer) in enumerate(turns):
        turn = Turn(
            request_id=f"{made.id}-{number}",
            question=question,
            standalone=None,
            answer=answer,
            answered=True,
            citations=(),
        )
        conversations.append(made.id, turn)
    return made.id


def found(conversations: ConversationRepository, principal: Principal, q: str) -> list[tuple[str, str, str]]:
    hits, _ = conversations.search(principal, q, limit=50)
    return [(one.id, hit.place, hit.snippet) for one, hit in hits]


def test_titles_questions_and_answers_are_searched_and_the_first_place_is_told(
    conversations: ConversationRepository,
) -> None:
    titled = begun(conversations, ANN, ("Anything?", "Nothing."), title="Notice periods")
    asked = begun(conversations, ANN, ("Hello?", "Yes."), ("What is the notice period?", "A notice."), title="Work")
    answered = begun(conversations, ANN, ("How long?", "The law says:\n\n**Notice** is 30 days [1]."), title="Rent")
    begun(conversations, ANN, ("Who?", "Ada."), title="People")

    assert found(conversations, ANN, "NOTICE") == [
        (answered, "answer", "The law says: **Notice** is 30 days [1]."),
        (asked, "question", "What is the notice period?"),
        (titled, "title", "Notice periods"),
    ]
    hits, _ = conversations.search(ANN, "notice", limit=50)
    assert [hit.request_id for _, hit in hits] == [f"{answered}-0", f"{asked}-1", None]


def test_a_snippet_is_cut_around_its_words(conversations: ConversationRepository) -> None:
    begun(conversations, ANN, ("Why?", f"{'before ' * 40}lantern{' after' * 40}"))

    ((_, _, snippet),) = found(conversations, ANN, "lantern")
    assert snippet.startswith("…before")
    assert snippet.endswith("after…")
    assert "before lantern after" in snippet
    assert len(snippet) < 140


@pytest.mark.parametrize(
    ("q", "text"), [("100%", "100% sure"), ("a_b", "the a_b test"), ("\\", "a \\ sign"), ("/", "and/or")]
)
def test_wildcards_stand_for_themselves(conversations: ConversationRepository, q: str, text: str) -> None:
    there = begun(conversations, ANN, (text, "Yes."), title="T")
    begun(conversations, ANN, ("1000 axb", "No."), title="T")

    assert [id_ for id_, _, _ in found(conversations, ANN, q)] == [there]


@pytest.mark.parametrize("q", ["über", "ÜBER", "Über"])
def test_letters_beyond_ascii_are_found_in_either_case(conversations: ConversationRepository, q: str) -> None:
    made = [begun(conversations, ANN, (f"{word} uns?", "Ja."), title="T") for word in ("Über", "über", "ÜBER")]

    assert sorted(id_ for id_, _, _ in found(conversations, ANN, q)) == sorted(made)


def test_a_search_finds_in_what_the_list_shows_and_in_nothing_else(conversations: ConversationRepository) -> None:
    anns = begun(conversations, ANN, ("The secret?", "Yes."))
    limited = begun(conversations, LIMITED, ("The secret?", "Yes."))
    bens = begun(conversations, BEN, ("The secret?", "Yes."))
    rivals = begun(conversations, RIVAL, ("The secret?", "Yes."))
    conversations.update(bens, principal=BEN, shared=True)

    for principal, seen in ((ANN, {anns, limited}), (LIMITED, {limited}), (BEN, {bens}), (RIVAL, {rivals})):
        assert {id_ for id_, _, _ in found(conversations, principal, "secret")} == seen
    assert {id_ for id_, _, _ in found(conversations, ADMIN, "secret")} == {anns, limited, bens}


def test_pages_of_what_was_found_follow_each_other(conversations: ConversationRepository) -> None:
    made = [begun(conversations, ANN, (f"Lantern {number}?", "Yes.")) for number in range(5)]
    conversations.update(made[1], principal=ANN, pinned=True)
    expected = [made[1], made[4], made[3], made[2], made[0]]

    first, cursor = conversations.search(ANN, "lantern", limit=2)
    second, cursor_2 = conversations.search(ANN, "lantern", limit=2, cursor=cursor)
    third, end = conversations.search(ANN, "lantern", limit=2, cursor=cursor_2)

    assert [one.id for one, _ in (*first, *second, *third)] == expected
    assert end is None


def test_what_cannot_be_stored_cannot_be_searched_for(conversations: ConversationRepository) -> None:
    with pytest.raises(InvalidRequest):
        conversations.search(ANN, "a\0b", limit=5)


def test_pinned_ones_are_first_and_pages_of_the_list_follow_each_other(conversations: ConversationRepository) -> None:
    made = [conversations.create(ANN).id for _ in range(5)]
    for id_ in (made[0], made[3]):
        assert conversations.update(id_, principal=ANN, pinned=True).pinned
    expected = [made[3], made[0], made[4], made[2], made[1]]

    listed: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = conversations.list(ANN, limit=2, cursor=cursor)
        listed += [one.id for one in page]
        if cursor is None:
            break
    assert listed == expected
    conversations.update(made[3], principal=ANN, pinned=False)
    assert [one.id for one in conversations.list(ANN, limit=2)[0]] == [made[0], made[4]]


def test_a_folder_is_given_and_taken_back(conversations: ConversationRepository) -> None:
    made = conversations.create(ANN)

    assert made.folder is None
    assert conversations.update(made.id, principal=ANN, folder="Contracts").folder == "Contracts"
    assert conversations.update(made.id, principal=ANN, title="T").folder == "Contracts"
    assert conversations.update(made.id, principal=ANN, folder="").folder is None
    with pytest.raises(InvalidRequest):
        conversations.update(made.id, principal=ANN, folder="a\0")
