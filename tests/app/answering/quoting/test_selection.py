"""app.answering.quoting.selection selects the units that answer, exactly as they are, and decides whether they do."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.metering.token_usage import Purpose
from app.answering.quoting.breadth import ONE
from app.answering.quoting.selection import NEAREST
from app.answering.states.reading import ANSWERED, Extract, Selection
from app.types import DocumentShare
from retrieval.compress import compress
from retrieval.ports import SpanReader, Vectors
from retrieval.types import Context, Span
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.quoting.selecting import selected
from tests.app.answering.sources import source
from tests.retrieval.fakes import HashingEmbedder, ranked

PASSAGES = (
    "Northwind makes turbines. Its revenue rose 12 percent\nto 48 million dollars in 2025. The board was pleased.",
    "Zoë Müller became chief financial officer of Northwind in March 2024. She came from Contoso.",
    "The plant in Oslo closed on 4 May after a fire. Nobody was hurt in the fire.",
)
PRICES = "| Part | Price |\n|---|---|\n| Bolt | 3 EUR |\n| Nut | 4 EUR |"
CLOSED = "When was the plant in Oslo closed?"


class RecordingEmbedder(HashingEmbedder):
    """Records the texts that it embeds as documents."""

    def __init__(self, *, prompt_tokens: int = 0) -> None:
        super().__init__(prompt_tokens=prompt_tokens)
        self.documents: list[str] = []

    def embed_documents(self, texts: Sequence[str], **given: object) -> Vectors:
        self.documents += texts
        return super().embed_documents(texts)


def context(*texts: str, budget: int = 1000) -> Context:
    return compress(
        ranked(*texts), query="", budget=budget, count_tokens=lambda text: len(text.split()), order=in_order
    )


def in_order(sources: object) -> list[int]:
    return list(range(len(sources)))  # type: ignore[arg-type]


def select(question: str, *texts: str, reader: SpanReader | None = None) -> Selection:
    """Every quote that the selection could show."""
    return selected(question, context(*texts), reader)


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize(
    ("question", "words", "quoted"),
    [
        (
            "How many million dollars was revenue in 2025?",
            "48 million dollars",
            "Northwind makes turbines. Its revenue rose 12 percent\nto 48 million dollars in 2025.",
        ),
        (
            "Who became chief financial officer of Northwind?",
            "Zoë Müller",
            "Zoë Müller became chief financial officer of Northwind in March 2024.",
        ),
        (CLOSED, "4 May", "The plant in Oslo closed on 4 May after a fire."),
    ],
)
def test_the_sentence_that_answers_is_quoted_first(question: str, words: str, quoted: str, reads: bool) -> None:
    found = select(question, *PASSAGES, reader=PointingReader(words) if reads else None)

    assert found.outcome == "answered"
    assert found.quotes[0].text == quoted
    assert found.quotes[0].words == (words if reads else "")
    assert found.score == found.quotes[0].score
    assert found.decides == reads


@pytest.mark.parametrize("reads", [True, False])
def test_what_no_sentence_is_about_is_less_likely_answered_than_what_one_is(reads: bool) -> None:
    on_topic = select(CLOSED, *PASSAGES, reader=PointingReader("4 May") if reads else None)
    off_topic = select(
        "Which enzyme splits lactose in milk?", *PASSAGES, reader=PointingReader("lactase") if reads else None
    )

    assert off_topic.score < on_topic.score


def test_the_thresholds_decide_between_answered_unsure_and_refused() -> None:
    reader, found = PointingReader("4 May"), context(*PASSAGES)
    score = selected(CLOSED, found, reader).score

    answered = selected(CLOSED, found, reader, answered=score, nearest=score / 2)
    unsure = selected(CLOSED, found, reader, answered=(1 + score) / 2, nearest=score)
    refused = selected(CLOSED, found, reader, answered=1.0, nearest=(1 + score) / 2)

    assert [one.outcome for one in (answered, unsure, refused)] == ["answered", "unsure", "refused"]
    assert answered.quotes == unsure.quotes != ()
    assert refused.quotes == ()
    assert [one.score for one in (answered, unsure, refused)] == [score] * 3
    assert [one.threshold for one in (answered, unsure, refused)] == [score, (1 + score) / 2, 1.0]


def test_the_servers_thresholds_are_in_order() -> None:
    assert 0 < NEAREST < ANSWERED < 1


def test_without_a_source_nothing_is_read_and_the_question_is_refused() -> None:
    embedder, reader = RecordingEmbedder(), PointingReader("4 May")
    found = selected("Why?", context(), reader, embedder=embedder)

    assert (found.quotes, found.score, found.outcome) == ((), 0.0, "refused")
    assert (found.decides, found.probabilities) == (False, ())
    assert embedder.embedded == embedder.documents == reader.passages == []


def test_the_answer_is_the_documents_own_characters() -> None:
    text = PASSAGES[2]
    found = selected(CLOSED, Context((source(text, start=100),), (), 10), PointingReader("4 May"))

    (quote, *_) = found.quotes
    assert quote.highlight is not None
    assert quote.words == text[quote.highlight.start_char - 100 : quote.highlight.end_char - 100] == "4 May"
    assert text[quote.span.start_char - 100 : quote.span.end_char - 100] == quote.text


@pytest.mark.parametrize(("margins", "first"), [((-9.0, 9.0), 2), ((9.0, -9.0), 1)])
def test_of_like_sentences_the_one_of_which_the_reader_is_surer_comes_first(
    margins: tuple[float, float], first: int
) -> None:
    texts = ("The plant in Oslo closed on 4 May.", "In Oslo the plant closed on 4 May.")
    found = select(CLOSED, *texts, reader=PointingReader("4 May", margins=margins))

    assert found.quotes[0].source.number == first


def test_a_cell_is_pointed_at_and_its_row_is_quoted_with_the_header() -> None:
    (quote, *_) = select("How much is a nut?", PRICES, reader=PointingReader("4 EUR")).quotes

    assert (quote.text, quote.words) == (PRICES, "4 EUR")


def test_of_overlapping_rows_only_the_likeliest_is_quoted() -> None:
    found = select("How much is a bolt?", PRICES, reader=PointingReader("3 EUR"))

    assert [quote.words for quote in found.quotes] == ["3 EUR"]


def test_the_heading_is_read_above_the_text_and_is_no_answer() -> None:
    reader = PointingReader("Closures")
    shown = Context((source(PASSAGES[2], heading="Closures"),), (), 10)
    found = selected(CLOSED, shown, reader)

    assert reader.passages == [f"Closures\n{PASSAGES[2]}"]
    assert all("Closures" not in quote.text and quote.words != "Closures" for quote in found.quotes)


def test_a_quote_begins_below_its_heading() -> None:
    text = "The line\n\nIt was founded in 1912. It has two ships."
    shown = Context((source(text, heading="The line"),), (), 10)

    def quotes(words: str) -> list[str]:
        found = selected("When was the line founded?", shown, PointingReader(words))
        return [quote.text for quote in found.quotes]

    assert quotes("1912")[0].startswith("It was founded in 1912.")
    assert not any(quote.startswith("The line") for quote in quotes("1912"))


@pytest.mark.parametrize("question", ["Why did the plant close?", "How do I close a plant?", "Did it close?"])
def test_questions_that_no_few_words_answer_are_read_too(question: str) -> None:
    reader = PointingReader("4 May")
    found = select(question, *PASSAGES, reader=reader)

    assert len(reader.passages) == len(PASSAGES)
    assert found.decides


def test_the_reader_does_not_read_questions_in_other_languages() -> None:
    reader = PointingReader("4 May")
    found = select("Wann wurde das Werk in Oslo geschlossen?", *PASSAGES, reader=reader)

    assert reader.passages == []
    assert not found.decides
    assert [quote.highlight for quote in found.quotes] == [None] * len(found.quotes)
    assert found == select("Wann wurde das Werk in Oslo geschlossen?", *PASSAGES)


pieces = st.sampled_from(
    [
        "Rain fell.", "A fire 1 [2]", "売上高は増加した。", "Oslo\nis cold.", "Why?", "", "Values:\n- rain\n- fire 1",
        "\n# Oslo\n\n", f"\n{PRICES}\n",
    ]
)  # fmt: skip
texts = st.lists(st.lists(pieces, max_size=6).map(" ".join), max_size=4)
questions = st.sampled_from(["Why?", "When did rain fall in Oslo?", "売上高", "", "fire 1"])
pointed = st.sampled_from([None, "fire", "Rain", "EUR", "Oslo\nis"])


@settings(deadline=None)
@given(texts=texts, question=questions, words=pointed)
def test_quotes_are_slices_likeliest_first_and_apart(texts: list[str], question: str, words: str | None) -> None:
    found = context(*texts)
    reader = None if words is None else PointingReader(words)
    selection = selected(question, found, reader)
    quotes = selection.quotes

    assert len(quotes) <= ONE.most
    assert bool(quotes) == bool(selection.probabilities)
    assert [quote.score for quote in quotes] == sorted((quote.score for quote in quotes), reverse=True)
    folded = [" ".join(quote.text.casefold().split()) for quote in quotes]
    assert len(folded) == len(set(folded))
    for place, quote in enumerate(quotes):
        held = quote.source.hit.chunk
        assert quote.source in found.sources
        assert quote.text == held.text[quote.span.start_char - held.start_char : quote.span.end_char - held.start_char]
        assert 0 < quote.score <= selection.score < 1
        if quote.highlight is not None:
            at = held.start_char
            assert quote.span.start_char <= quote.highlight.start_char < quote.highlight.end_char <= quote.span.end_char
            assert quote.words == held.text[quote.highlight.start_char - at : quote.highlight.end_char - at] != ""
        for other in quotes[:place]:
            assert (
                other.source != quote.source
                or other.span.end_char <= quote.span.start_char
                or quote.span.end_char <= other.span.start_char
            )


@settings(deadline=None)
@given(texts=texts, question=questions, words=pointed)
def test_tokens_are_those_that_the_models_read(texts: list[str], question: str, words: str | None) -> None:
    embedder, reader = RecordingEmbedder(prompt_tokens=1), None if words is None else PointingReader(words)
    metered: list[tuple[Purpose, str, int, int]] = []

    @contextmanager
    def metering(
        purpose: Purpose, model: str, revision: str, tokens: int, *, documents: tuple[DocumentShare, ...] = ()
    ) -> Iterator[None]:
        read = 0 if reader is None else len(reader.passages)
        assert sum(share.tokens for share in documents) == (tokens if purpose is Purpose.LOCATE else 0)
        metered.append((purpose, f"{model}@{revision}", tokens, len(embedder.documents) + read))
        yield

    selection = selected(question, context(*texts), reader, embedder=embedder, metering=metering)

    assert len(embedder.documents) == len(selection.probabilities) <= ONE.embedded
    embedded = sum(min(embedder.count_tokens(text), embedder.info.max_tokens) + 1 for text in embedder.documents)
    # each call is metered once, with its tokens, before anything is read
    read = reader is not None and bool(reader.passages)
    expected: list[tuple[Purpose, str, int, int]] = []
    if reader is not None and read:
        tokens = reader.count_tokens(question, reader.passages)
        expected.append((Purpose.LOCATE, f"{reader.model}@{reader.revision}", tokens, 0))
    if selection.probabilities:
        model = f"{embedder.info.model}@{embedder.info.revision}"
        expected.append((Purpose.EXTRACT, model, embedded, 0 if reader is None else len(reader.passages)))
    assert selection.decides == read
    assert metered == expected


def test_only_the_most_promising_sentences_are_embedded() -> None:
    sentences = [f"Sentence {word} is about nothing." for word in "abcdefghijklmnopqrstuvwxyz"]
    embedder = RecordingEmbedder()
    selected("When did revenue rise?", context(" ".join(sentences), "Revenue rose in 2025."), embedder=embedder)

    assert len(embedder.documents) == ONE.embedded
    assert "Revenue rose in 2025." in embedder.documents


def test_a_sentence_is_embedded_behind_its_heading() -> None:
    embedder = RecordingEmbedder()
    selected("When did it rise?", Context((source("It rose in 2025.", heading="Revenue"),), (), 9), embedder=embedder)

    assert embedder.documents == ["Revenue: It rose in 2025."]


SHOWN = (source(PASSAGES[2], number=1), source(PASSAGES[1], number=2))
SELECTION = Selection(
    (Extract(SHOWN[0], Span(0, 47), PASSAGES[2][:47], 0.8, Span(28, 33)),),
    0.8,
    "answered",
    decides=True,
    probabilities=((1, Span(0, 47), 0.8), (1, Span(48, 76), 0.3), (2, Span(0, 69), 0.1)),
)


@pytest.mark.parametrize(
    ("cited", "probability"),
    [
        ([], 0.0),
        ([(1, Span(0, 10))], 0.8),
        ([(1, Span(46, 60))], 0.8),
        ([(1, Span(47, 60))], 0.3),
        ([(2, Span(0, 10))], 0.1),
        ([(2, Span(0, 10)), (1, Span(50, 60))], 0.3),
        ([(2, Span(69, 90))], 0.0),
        ([(3, Span(0, 10))], 0.0),
    ],
)
def test_an_answer_is_as_likely_as_the_likeliest_candidate_that_it_cites(
    cited: list[tuple[int, Span]], probability: float
) -> None:
    assert SELECTION.probability_of(cited) == probability


def test_the_words_of_a_quote_are_those_of_its_highlight() -> None:
    (quote,) = SELECTION.quotes

    assert quote.words == "4 May"
    assert replace(quote, highlight=None).words == ""
