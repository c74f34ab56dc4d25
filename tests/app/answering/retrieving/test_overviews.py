"""app.answering.retrieving.overviews: which document is meant, how sure that is, and exact quotes of it."""

import pytest

from app.answering.citing.citation import CONFIRMED
from app.answering.question import Question
from app.answering.quoting.overview_quotes import quotes_of
from app.answering.retrieving.overviews import MOST_FOUND, Overviews
from app.answering.states.sources import Overview
from app.answering.understanding.documents.meant import FOLLOWED, KNOWN, DocumentsMeant
from app.db.catalogue import CatalogueRepository
from app.db.contents import ContentRepository
from app.db.session import Database
from retrieval.compress import compress
from retrieval.types import Comparison, Context, Hit, Scope, Scores
from tests.app.answering.retrieving.outlined import index, question
from tests.app.db.samples import Library
from tests.databases import database, migrated_file, postgres_database, sqlite_database

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

PLAN = (
    "# Strategic Plan 2022",
    "The agency serves its customers with talented people in all of its regions.",
    "# Vision",
    "Effective and efficient government for the people of the country.",
    "# Mission",
    "The agency delivers the best value in real estate and technology.",
)
MEMO = ("To whom it may concern:", "There were twenty thousand bottles of water delivered in January this year.")
THIS = "What is this document about?"


class Shelf:
    """Documents and their overviews."""

    def __init__(self, database: Database) -> None:
        self.library = Library(database)
        self.contents = ContentRepository(database)
        catalogue = CatalogueRepository(database)
        documents = DocumentsMeant(catalogue)
        self.overviews = Overviews(documents, catalogue, self.contents, min_evidence=0.3)

    def add(self, filename: str, *lines: str, title: str | None = None) -> str:
        return index(self.library, filename, *lines, title=title)

    def hits(self, *documents: str) -> list[Hit]:
        """All chunks of the documents, best first."""
        chunks = [chunk for one in documents for chunk in self.contents.chunks(one, tenant_id="t1", limit=9)[0]]
        return [Hit(chunk, Scores(fused=1.0, dense=0.2)) for chunk in chunks]

    def meant(self, asked: Question | str, hits: list[Hit] | None = None) -> tuple[str, float] | None:
        """The document whose overview is given, and its probability; by search only with `hits`."""
        asked = question(asked) if isinstance(asked, str) else asked
        found = self.overviews.known(asked)
        if found is None and hits is not None:
            found = self.overviews.found(asked, hits)
        return None if found is None else (found.hits[0].chunk.document_id, found.score)


@pytest.fixture
def shelf(database: Database) -> Shelf:
    return Shelf(database)


def context(found: Overview) -> Context:
    return compress(
        found.hits,
        query="",
        budget=4000,
        count_tokens=lambda text: len(text.split()),
        order=lambda sources: list(range(len(sources))),
    )


def test_the_title_the_opening_and_the_headings_are_exact_quotes(shelf: Shelf) -> None:
    plan = shelf.add("plan.pdf", *PLAN, title="Strategic plan 2022")
    found = shelf.overviews.known(question(THIS))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None and selection.title is not None
    assert (selection.outcome, selection.score) == ("answered", KNOWN)
    assert [quote.text for quote in selection.quotes] == [PLAN[1], "Vision", "Mission"]
    assert selection.title.words == selection.title.text == "Strategic Plan 2022"
    for quote in (*selection.quotes, selection.title):
        at = quote.span
        assert quote.text == shelf.contents.text(plan, tenant_id="t1", start=at.start_char, end=at.end_char)
        assert quote.score == KNOWN >= CONFIRMED


def test_a_title_that_is_no_line_of_the_document_is_left_out(shelf: Shelf) -> None:
    shelf.add("memo.txt", *MEMO, title="Memorandum of January")
    found = shelf.overviews.known(question(THIS))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None
    assert ([quote.text for quote in selection.quotes], selection.title) == ([MEMO[1]], None)


def test_an_opening_that_is_no_prose_is_quoted_and_not_confirmed(shelf: Shelf) -> None:
    shelf.add("cups.csv", "Team | Cups", "Team: Blues | Cups: 1", title="Stanley Cups")
    found = shelf.overviews.known(question(THIS))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None and selection.quotes
    assert (selection.outcome, selection.score) == ("answered", MOST_FOUND)
    assert all(quote.score < CONFIRMED for quote in selection.quotes)


def test_rows_in_an_opening_are_a_quote_of_their_own(shelf: Shelf) -> None:
    rows = ("Team | Cups", "Team: Blues | Cups: 1", "Team: Flyers | Cups: 2")
    cups = shelf.add("cups.html", "Cups won in Norway", *rows, "as of May", title="Cups")
    found = shelf.overviews.known(question(THIS))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None
    first, table, last = selection.quotes
    assert [first.text, last.text] == ["Cups won in Norway", "as of May"]
    assert table.text.split() == " ".join(rows).split()
    for quote in selection.quotes:
        at = quote.span
        assert quote.text == shelf.contents.text(cups, tenant_id="t1", start=at.start_char, end=at.end_char)


def test_the_name_is_the_line_that_is_the_title_with_the_opening_and_no_headings(shelf: Shelf) -> None:
    shelf.add("plan.pdf", *PLAN, title="Strategic plan 2022")
    found = shelf.overviews.known(question("What is the title of this document?"))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None and selection.title is not None
    assert (selection.title.words, selection.score) == (PLAN[0].removeprefix("# "), KNOWN)
    assert [quote.text for quote in selection.quotes] == [PLAN[1]]


def test_without_a_title_the_name_is_sought_in_the_first_lines_and_not_confirmed(shelf: Shelf) -> None:
    shelf.add("a1.txt", "Exhibit 10.27", "MARKETING AGREEMENT", *MEMO)
    found = shelf.overviews.known(question("What kind of agreement is this?"))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None and selection.title is not None
    assert selection.title.words == "MARKETING AGREEMENT"
    assert [quote.text.split("\n")[:3:2] for quote in selection.quotes] == [["Exhibit 10.27", "MARKETING AGREEMENT"]]
    assert selection.score == MOST_FOUND < CONFIRMED


def test_the_name_of_a_document_that_is_not_at_hand_is_sought_as_any_fact(shelf: Shelf) -> None:
    shelf.add("plan.pdf", *PLAN)
    other = shelf.add("memo.txt", *MEMO)

    assert shelf.meant("What is the name of the contract?", shelf.hits(other)) is None


def test_at_most_as_many_chunks_as_asked_for_are_read_the_opening_first(shelf: Shelf) -> None:
    shelf.add("plan.pdf", *PLAN, title="Strategic Plan 2022")
    found = shelf.overviews.known(question(THIS, top_k=1))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None
    assert len(found.hits) == 1
    assert [quote.text for quote in selection.quotes] == [PLAN[1]]


def test_the_only_document_in_scope_is_meant(shelf: Shelf) -> None:
    plan, memo = shelf.add("plan.pdf", *PLAN), shelf.add("memo.txt", *MEMO)

    assert shelf.meant(THIS) is None
    assert shelf.meant(question(THIS, scope=Scope(tenant_id="t1", document_ids=(memo,)))) == (memo, KNOWN)
    assert shelf.meant(question(THIS, scope=Scope(tenant_id="t1", document_ids=(plan,)))) == (plan, KNOWN)
    assert shelf.meant(question(THIS, scope=Scope(tenant_id="t1", document_ids=()))) is None
    assert shelf.meant(question(THIS, scope=Scope(tenant_id="other"))) is None


@pytest.mark.parametrize(
    "asked",
    ["What does the memo cover?", "tl;dr of fake-memo.txt", "Summarise the fake memo", "What is the memo about?"],
)
def test_the_document_that_the_question_names_is_meant(shelf: Shelf, asked: str) -> None:
    shelf.add("plan.pdf", *PLAN, title="Strategic Plan 2022")
    memo = shelf.add("fake-memo.txt", *MEMO)

    assert shelf.meant(asked) == (memo, KNOWN)


def test_a_subject_of_other_words_needs_all_of_them_in_a_name(shelf: Shelf) -> None:
    plan = shelf.add("plan.pdf", *PLAN, title="Strategic Plan 2022")
    shelf.add("fake-memo.txt", *MEMO)

    assert shelf.meant("Summarise the strategic plan") == (plan, KNOWN)
    assert shelf.meant("Summarise the strategic aims", shelf.hits(plan)) is None
    assert shelf.meant("What is the delivery about?", shelf.hits(plan)) is None


def test_several_of_one_name_are_equally_likely(shelf: Shelf) -> None:
    one, other = shelf.add("report-2021.txt", *MEMO), shelf.add("report-2022.txt", *PLAN)

    assert shelf.meant("What does the report cover?") == (other, KNOWN / 2)
    assert shelf.meant(question("What does the report cover?", preferred=(one,))) == (one, FOLLOWED)


def test_the_document_of_the_last_answer_is_meant_below_what_is_confirmed(shelf: Shelf) -> None:
    plan, memo = shelf.add("plan.pdf", *PLAN, title="Strategic Plan 2022"), shelf.add("memo.txt", *MEMO)

    assert shelf.meant(question(THIS, preferred=(memo,))) == (memo, FOLLOWED)
    assert shelf.meant(question(THIS, preferred=(memo, plan))) == (memo, FOLLOWED / 2)
    assert shelf.meant(question("What does the memo say?", preferred=(plan,))) == (memo, KNOWN)
    outside = Scope(tenant_id="t1", filter=Comparison("year", "$eq", 2024))
    assert shelf.meant(question(THIS, preferred=(memo,), scope=outside)) is None
    assert FOLLOWED < CONFIRMED


def test_a_search_points_at_a_document_with_the_questions_words(shelf: Shelf) -> None:
    plan, memo = shelf.add("a.pdf", *PLAN), shelf.add("b.txt", *MEMO)
    asked = "What is the report on the bottles about?"

    assert shelf.meant(asked) is None
    assert shelf.meant(asked, shelf.hits(plan, memo)) == (memo, MOST_FOUND)
    assert shelf.meant(asked, shelf.hits(plan)) is None, "nothing in it is about bottles"
    assert shelf.meant("What is the report on unicorns about?", shelf.hits(plan, memo)) is None
    assert MOST_FOUND < CONFIRMED


def test_where_nothing_tells_which_of_many_is_meant_the_opening_is_only_likely(shelf: Shelf) -> None:
    documents = [shelf.add(f"{number}.txt", *PLAN, f"It is number {number}.") for number in range(5)]
    asked = question(THIS)
    assert shelf.overviews.known(asked) is None
    found = shelf.overviews.found(asked, shelf.hits(documents[2]))
    assert found is not None
    selection = quotes_of(found, context(found))

    assert selection is not None
    assert (selection.score, selection.outcome) == (KNOWN / 5, "unsure")
    assert [quote.text for quote in selection.quotes] == [PLAN[1]]
    assert shelf.overviews.found(asked, []) is None


@pytest.mark.parametrize("asked", ["Who wrote the memo?", "What does the memo say about water?", "Why?"])
def test_a_question_for_a_fact_has_no_overview(shelf: Shelf, asked: str) -> None:
    memo = shelf.add("memo.txt", *MEMO)

    assert shelf.meant(asked, shelf.hits(memo)) is None


def test_the_question_counts_as_it_was_asked(shelf: Shelf) -> None:
    memo = shelf.add("memo.txt", *MEMO)
    rewritten = question("What is the water about?", asked="What is it about?")

    assert shelf.meant(rewritten) == (memo, KNOWN)
