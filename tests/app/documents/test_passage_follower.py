"""Passages that kept answers cite are followed into new versions of their documents."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from app.db.answer_citations import AnswerCitationRepository
from app.db.cited_passages import CitedPassageRepository, PassagePlace
from app.db.conversations import ConversationRepository
from app.db.session import Database
from app.db.tables.answers import cited_passage, superseded_version
from app.documents.passage_follower import PassageFollower
from app.types import Document, Principal, Role, Turn
from ingestion.revisions import PassageState
from tests.app.db.samples import Library

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)
FEE = "The fee for a parking space is 30 euros a month."
CELLAR = "Bicycles are kept in the cellar of the back building."
PETS = "Pets need a written permission of the landlord."


class Desk:
    """A document about a house, a conversation that cites it, and what became of the passages."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.library = Library(database)
        self.conversations = ConversationRepository(database)
        self.passages = CitedPassageRepository(database)
        self.follower = PassageFollower(self.passages)
        self.conversation = self.conversations.create(ANN)
        self.turns = 0

    def answered(self, document: Document, *quotes: str, version: int = 1, text: str | None = None) -> None:
        """Keep an answer that cites quotes of the document's version, whose text is the live one by default."""
        self.turns += 1
        whole = text if text is not None else "\n\n".join((FEE, CELLAR, PETS))
        citations = tuple(
            {
                "document_id": document.id,
                "version": version,
                "start_char": whole.index(quote),
                "end_char": whole.index(quote) + len(quote),
                "cited_text": quote,
                "answer_start": 0,
                "answer_end": 3,
                "page_start": 1,
                "page_end": 1,
            }
            for quote in quotes
        )
        turn = Turn(
            request_id=f"req_{self.turns}",
            question="What holds?",
            standalone=None,
            answer="[1] It does.",
            answered=True,
            citations=citations,
        )
        self.conversations.append(self.conversation.id, turn)
        AnswerCitationRepository(self.database).record(
            turn.request_id, tenant_id="t1", citations={document.id: len(quotes)}
        )

    def states(self) -> list[tuple[PassageState | None, str | None]]:
        """What became of the passages of all turns, with the new wording of altered ones."""
        turns = self.conversations.turns(self.conversation.id, principal=ANN)
        found = self.passages.of_citations([one for turn in turns for one in turn.citations], tenant_id="t1")
        return [(found[place].state, found[place].text) for place in sorted(found)]

    def rows(self, table: sa.Table) -> int:
        with self.database.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


@pytest.mark.parametrize("replace", [False, True])
def test_passages_move_are_altered_and_are_gone(desk: Desk, *, replace: bool) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, FEE, CELLAR, PETS)
    before = desk.states()

    new_fee = FEE.replace("30", "35")
    desk.library.index_again(document, "These are the rules of the house.", new_fee, PETS, replace=replace)
    undecided = desk.states()
    done = desk.follower.work()

    assert before == [(PassageState.CURRENT, None)] * 3
    assert undecided == [(None, None)] * 3
    assert done == 1
    assert desk.states() == [(PassageState.ALTERED, new_fee), (PassageState.GONE, None), (PassageState.MOVED, None)]
    assert desk.rows(superseded_version) == 0
    assert desk.follower.work() == 0


def test_a_passage_that_moved_has_its_place_and_its_page(desk: Desk) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, PETS)
    desk.library.index_again(document, PETS, FEE)
    desk.follower.work()

    citations = [
        one for turn in desk.conversations.turns(desk.conversation.id, principal=ANN) for one in turn.citations
    ]
    found = desk.passages.of_citations(citations, tenant_id="t1")
    assert list(found.values()) == [
        PassagePlace(version=2, state=PassageState.MOVED, start_char=0, end_char=len(PETS), page_start=1, page_end=1)
    ]


@pytest.mark.parametrize("replace", [False, True])
def test_a_passage_is_followed_over_several_versions(desk: Desk, *, replace: bool) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, FEE, CELLAR)
    new_fee = FEE.replace("30", "35")
    for texts in ((new_fee, CELLAR), ("Preface of the rules.", new_fee, CELLAR), ("Preface of the rules.", new_fee)):
        desk.library.index_again(document, *texts, replace=replace)
        desk.follower.work()

    assert desk.states() == [(PassageState.ALTERED, new_fee), (PassageState.GONE, None)]


@pytest.mark.parametrize("replace", [False, True])
def test_two_swaps_before_the_first_is_followed_lose_nothing(desk: Desk, *, replace: bool) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, FEE, PETS)
    desk.library.index_again(document, "Preface of the rules.", FEE, PETS, replace=replace)
    desk.library.index_again(document, "Preface of the rules.", PETS, FEE, replace=replace)
    desk.follower.work()

    assert desk.states() == [(PassageState.MOVED, None)] * 2
    assert desk.rows(superseded_version) == 0


@pytest.mark.parametrize("replace", [False, True])
def test_a_passage_that_comes_back_is_found_again(desk: Desk, *, replace: bool) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, CELLAR)
    desk.library.index_again(document, "A file that was cut off.", replace=replace)
    desk.follower.work()
    gone = desk.states()
    desk.library.index_again(document, FEE, CELLAR, PETS, replace=replace)
    desk.follower.work()

    assert gone == [(PassageState.GONE, None)]
    assert desk.states() == [(PassageState.CURRENT, None)]


@pytest.mark.parametrize("replace", [False, True])
def test_an_answer_that_read_the_version_before_is_followed(desk: Desk, *, replace: bool) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.library.index_again(document, CELLAR, FEE, replace=replace)
    desk.answered(document, FEE)
    undecided = desk.states()
    desk.follower.work()

    assert undecided == [(None, None)]
    assert desk.states() == [(PassageState.MOVED, None)]


def test_passages_of_a_deleted_document_are_gone_at_once_and_forgotten(desk: Desk) -> None:
    document, other = desk.library.index(FEE, CELLAR, PETS), desk.library.index(FEE, CELLAR, "Else.")
    desk.answered(document, FEE)
    desk.answered(other, FEE)
    desk.library.index_again(document, CELLAR, replace=True)
    desk.library.documents.delete(document.id, tenant_id="t1")
    desk.follower.work()

    assert sorted(str(state) for state, _ in desk.states()) == [PassageState.CURRENT, PassageState.GONE]
    assert desk.rows(cited_passage) == 1
    assert desk.rows(superseded_version) == 0


def test_another_tenant_learns_nothing(desk: Desk) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, FEE)
    (turn,) = desk.conversations.turns(desk.conversation.id, principal=ANN)

    found = desk.passages.of_citations(turn.citations, tenant_id="t2")
    assert [one.state for one in found.values()] == [PassageState.GONE]


def test_work_that_a_crash_interrupted_is_done_by_the_next_process(desk: Desk) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, FEE, CELLAR)
    desk.library.index_again(document, CELLAR, FEE, replace=True)
    live = desk.passages.live(document.id)
    assert live is not None
    first, second = sorted(live.places)
    left = desk.passages.place(
        live, {first: PassagePlace(version=2, state=PassageState.MOVED, start_char=55, end_char=103)}
    )
    half = desk.states()

    PassageFollower(CitedPassageRepository(desk.database)).work()

    assert not left
    assert half == [(PassageState.MOVED, None), (None, None)]
    assert desk.states() == [(PassageState.MOVED, None), (PassageState.MOVED, None)]
    assert desk.rows(superseded_version) == 0
    assert second[0] == document.id


def test_a_place_in_an_older_version_does_not_replace_a_newer_one(desk: Desk) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, FEE)
    desk.library.index_again(document, CELLAR, FEE)
    slow = desk.passages.live(document.id)
    assert slow is not None
    desk.library.index_again(document, CELLAR)
    desk.follower.work()
    (place,) = slow.places

    assert desk.passages.place(slow, {place: PassagePlace(version=2, state=PassageState.MOVED)})
    assert desk.states() == [(PassageState.GONE, None)]


def test_what_a_swap_and_an_answer_at_the_same_moment_missed_is_found_by_the_sweep(desk: Desk) -> None:
    document = desk.library.index(FEE, CELLAR, PETS)
    desk.answered(document, FEE)
    desk.library.index_again(document, CELLAR, FEE)
    with desk.database.write() as connection:
        connection.execute(sa.delete(superseded_version))  # as if neither had seen the other

    now = 0.0
    clock: Callable[[], float] = lambda: now  # noqa: E731
    follower = PassageFollower(desk.passages, clock=clock)
    assert follower.work() == 1
    assert desk.states() == [(PassageState.MOVED, None)]


def test_a_swap_of_a_document_that_no_answer_cites_notes_nothing(desk: Desk) -> None:
    document = desk.library.index(FEE, CELLAR)
    desk.library.index_again(document, CELLAR)

    assert desk.rows(superseded_version) == 0
