"""app.answering.locator: the span reader's spans in the documents, and its metered calls."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.locator import Locator, Passage
from app.answering.question import Question
from app.db.session import Database
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.types import Pointer, Scope, Source, Span
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.sources import source
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="When did the plant in Oslo close?",
    scope=Scope(tenant_id="t"),
)
TEXT = "The plant in Oslo closed on 4 May after a fire. Nobody was hurt."


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


def test_the_answer_is_the_documents_own_characters(ledger: Ledger) -> None:
    located = Locator(PointingReader("4 May"), ledger=ledger).locate(
        QUESTION, [source(TEXT, start=100)], abstention=None
    )

    assert located is not None
    (found,) = located.spans
    assert found.text == "4 May"
    assert TEXT[found.span.start_char - 100 : found.span.end_char - 100] == "4 May"
    assert (located.probability, located.threshold) == (0.9, 0.4)
    assert located.likely == located.spans


def test_the_likeliest_source_comes_first(ledger: Ledger) -> None:
    reader = PointingReader("4 May", probabilities=(0.2, 0.7, 0.5))
    sources = [source(TEXT, number=number) for number in (1, 2, 3)]

    located = Locator(reader, ledger=ledger).locate(QUESTION, sources, abstention=None)

    assert located is not None
    assert [found.source.number for found in located.spans] == [2, 3, 1]
    assert [found.source.number for found in located.likely] == [2, 3]


def test_who_wants_fewer_refusals_says_how_sure_the_reader_must_be(ledger: Ledger) -> None:
    locator = Locator(PointingReader("4 May", probabilities=(0.3,)), ledger=ledger)

    by_reader = locator.locate(QUESTION, [source(TEXT)], abstention=None)
    asked = locator.locate(replace(QUESTION, request_id="req_2"), [source(TEXT)], abstention=0.8)

    assert by_reader is not None
    assert asked is not None
    assert not by_reader.likely
    assert asked.likely


def test_what_was_read_is_on_the_bill(ledger: Ledger) -> None:
    located = Locator(PointingReader("4 May"), ledger=ledger).locate(QUESTION, [source(TEXT)] * 2, abstention=None)

    assert located is not None
    (row,) = ledger.usage("req_1")
    assert (row.operation, row.model, row.status) == (Operation.JUDGE, "pointing", UsageStatus.COMPLETED)
    assert row.input_tokens == located.tokens == 2 * (len(QUESTION.text.split()) + len(TEXT.split()))


def test_a_reader_that_breaks_leaves_no_open_row(ledger: Ledger) -> None:
    with pytest.raises(RuntimeError):
        Locator(PointingReader("4 May", failing=True), ledger=ledger).locate(QUESTION, [source(TEXT)], abstention=None)

    assert [row.status for row in ledger.usage("req_1")] == [UsageStatus.ERROR]


@pytest.mark.parametrize("text", ["Why did the plant close?", "How do I close a plant?", "Did it close?"])
def test_what_no_few_words_answer_is_not_read(ledger: Ledger, text: str) -> None:
    reader = PointingReader("4 May")

    assert Locator(reader, ledger=ledger).locate(replace(QUESTION, text=text), [source(TEXT)], abstention=None) is None
    assert reader.passages == []
    assert not ledger.usage("req_1")


def test_without_sources_nothing_is_read(ledger: Ledger) -> None:
    assert Locator(PointingReader("4 May"), ledger=ledger).locate(QUESTION, [], abstention=None) is None


def test_the_heading_is_read_and_is_no_answer(ledger: Ledger) -> None:
    reader = PointingReader("Closures")

    located = Locator(reader, ledger=ledger).locate(QUESTION, [source(TEXT, heading="Closures")], abstention=None)

    assert reader.passages == [f"Closures\n{TEXT}"]
    assert located is not None
    assert located.spans == ()
    assert located.probability == 0.0


pieces = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=1, max_size=4)


@given(texts=pieces, heading=st.sampled_from(["", "Closures"]), data=st.data())
def test_whatever_is_pointed_at_slices_to_its_text(texts: list[str], heading: str, data: st.DataObject) -> None:
    shown, gap, start = "", "…", 7
    spans = []
    for text in texts:
        spans.append(Span(start + len(shown), start + len(shown) + len(text)))
        shown += text + gap
    presented: Source = replace(source(shown, heading=heading, start=start), spans=tuple(spans))
    passage = Passage.of(presented)
    first = data.draw(st.integers(0, len(passage.text)))
    last = data.draw(st.integers(first, len(passage.text) + 1))

    found = passage.at(Pointer(first, last, 0.5))

    if found is not None:
        assert found.text
        assert found.text == found.text.strip()
        assert shown[found.span.start_char - start : found.span.end_char - start] == found.text
        assert any(s.start_char <= found.span.start_char and found.span.end_char <= s.end_char for s in spans)
        assert found.text in passage.text[first : last + 1]
