"""app.answering.generating.choosing: a model reads the sources with the likeliest quotes, numbered from 1."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.generating.choosing import chosen
from app.answering.generating.model_class import ASKING, Asking, ModelClass
from app.answering.generating.wording import WRITER
from app.answering.states.reading import Extract, Selection
from app.answering.states.sources import Grounding
from retrieval.types import Context, Source, Span
from tests.app.answering.groundings import QUESTION, grounding_of
from tests.app.answering.sources import source

TEXTS = ("Forty ships came in May.", "Ferries sail daily.", "The harbour is deep.", "Nobody was hurt.")
ASKED = Asking(wording=WRITER, passages=2, tokens=1000)


def shown(count: int = 4) -> Context:
    sources = tuple(source(text, number=number) for number, text in enumerate(TEXTS[:count], 1))
    return Context(sources, (), sum(one.tokens for one in sources))


def selected(context: Context, *likely: float) -> Selection:
    """Each source has one quote, its whole text, with this probability; the likeliest first."""
    spans = [Span(0, len(one.hit.chunk.text)) for one in context.sources]
    quotes = [
        Extract(one, span, one.hit.chunk.text, score)
        for one, span, score in zip(context.sources, spans, likely, strict=True)
    ]
    return Selection(
        tuple(sorted(quotes, key=lambda quote: -quote.score)),
        max(likely),
        "answered",
        decides=True,
        probabilities=tuple(
            (one.number, span, score) for one, span, score in zip(context.sources, spans, likely, strict=True)
        ),
    )


def texts(sources: tuple[Source, ...]) -> list[tuple[int, str]]:
    return [(one.number, one.hit.chunk.text) for one in sources]


def test_the_sources_with_the_likeliest_quotes_are_read_first_and_numbered_from_1() -> None:
    context = shown()
    selection = selected(context, 0.1, 0.9, 0.05, 0.4)

    grounding, found = chosen(grounding_of(QUESTION, context), selection, ASKED, count_tokens=len)

    assert texts(grounding.context.sources) == [(1, TEXTS[1]), (2, TEXTS[3])]
    assert [one.header for one in grounding.context.sources] == ["[1] report.pdf, page 1\n", "[2] report.pdf, page 1\n"]
    assert found is not None
    assert [(quote.source.number, quote.text) for quote in found.quotes] == [
        *((1, TEXTS[1]), (2, TEXTS[3]), (3, TEXTS[0]), (4, TEXTS[2]))
    ]
    assert [(number, score) for number, _, score in found.probabilities] == [(3, 0.1), (1, 0.9), (4, 0.05), (2, 0.4)]


def test_without_a_selection_the_best_hits_are_read() -> None:
    grounding, found = chosen(grounding_of(QUESTION, shown()), None, ASKED, count_tokens=len)

    assert texts(grounding.context.sources) == [(1, TEXTS[0]), (2, TEXTS[1])]
    assert found is None


def test_a_question_with_several_answers_has_twice_as_many_sources() -> None:
    question = replace(QUESTION, text="List all ships that came in May.")

    grounding, _ = chosen(grounding_of(question, shown()), None, ASKED, count_tokens=len)

    assert len(grounding.context.sources) == 4


@pytest.mark.parametrize(("tokens", "count"), [(1, 1), (60, 1), (100, 2), (1000, 4)])
def test_no_more_tokens_are_read_than_asked_for_but_for_one_source(tokens: int, count: int) -> None:
    asked = replace(ASKED, passages=9, tokens=tokens)

    grounding, _ = chosen(grounding_of(QUESTION, shown()), None, asked, count_tokens=len)

    assert len(grounding.context.sources) == count
    assert grounding.context.tokens == sum(one.tokens for one in grounding.context.sources)


def test_a_model_that_is_pointed_at_quotes_reads_all_in_their_order() -> None:
    grounding = grounding_of(QUESTION, shown())
    selection = selected(grounding.context, 0.1, 0.9, 0.05, 0.4)

    assert chosen(grounding, selection, ASKING[ModelClass.QUOTES], count_tokens=len) == (grounding, selection)


def test_summaries_are_read_whole() -> None:
    grounding = replace(grounding_of(QUESTION, shown()), summarised=("chk_1",))

    assert chosen(grounding, None, ASKED, count_tokens=len)[0] is grounding


@given(likely=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4), most=st.integers(1, 5))
def test_a_quote_keeps_its_source_whatever_is_chosen(likely: list[float], most: int) -> None:
    context = shown(len(likely))
    selection = selected(context, *likely)

    grounding, found = chosen(
        grounding_of(QUESTION, context), selection, replace(ASKED, passages=most), count_tokens=len
    )

    assert found is not None
    assert [quote.text for quote in found.quotes] == [quote.text for quote in selection.quotes]
    assert all(quote.source.hit.chunk.text == quote.text for quote in found.quotes)
    assert {quote.source.number for quote in found.quotes} == set(range(1, len(likely) + 1))
    assert [one.number for one in grounding.context.sources] == [*range(1, min(most, len(likely)) + 1)]


TABLE = "Revenue | 84 | 79\nCosts | 60 | 58"
NAMED = "Profit: Revenue | 2022: 84 | 2021: 79\nProfit: Costs | 2022: 60 | 2021: 58"
HEADER = "[1] report.pdf, page 1\n"


def table() -> Source:
    """A passage of a table that began before it."""
    found = source(TABLE)
    chunk = replace(found.hit.chunk, table_header="Profit | 2022 | 2021")
    return replace(found, hit=replace(found.hit, chunk=chunk))


def roomy(context: Context, room: int) -> Grounding:
    """A grounding whose sources may have `room` tokens."""
    grounding = grounding_of(QUESTION, context)
    return replace(grounding, budget=replace(grounding.budget, sources=room))


@pytest.mark.parametrize(
    ("room", "body"), [(1000, NAMED), (len(f"{HEADER}{NAMED}\n"), NAMED), (len(f"{HEADER}{TABLE}\n"), TABLE)]
)
def test_rows_have_the_names_of_their_columns_as_far_as_there_is_room(room: int, body: str) -> None:
    context = Context((table(),), (), len(TABLE))

    grounding, _ = chosen(roomy(context, room), selected(context, 0.9), ASKED, count_tokens=len)

    [read] = grounding.context.sources
    assert read.body == f"{body}\n"
    assert read.tokens == len(read.header) + len(read.body) == grounding.context.tokens
    assert read.hit == context.sources[0].hit
    assert read.spans == context.sources[0].spans


def test_no_source_is_left_out_for_the_names_of_another() -> None:
    context = Context((table(), source(TEXTS[0], number=2)), (), 0)
    limit = replace(ASKED, tokens=len(f"{HEADER}{TABLE}\n{HEADER}{TEXTS[0]}\n"))

    grounding, _ = chosen(roomy(context, 1000), selected(context, 0.9, 0.8), limit, count_tokens=len)

    assert [one.body for one in grounding.context.sources] == [f"{NAMED}\n", f"{TEXTS[0]}\n"]
