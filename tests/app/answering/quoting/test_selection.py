"""app.answering.quoting.selection selects the sentences that answer, exactly as they stand, or none."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.quoting.features import features_of, sentences_of
from app.answering.quoting.selection import MOST_EMBEDDED, MOST_QUOTED, THRESHOLD, SentenceSelector, score
from retrieval.compress import compress
from retrieval.types import Context
from tests.retrieval.fakes import HashingEmbedder, chunk, hit, ranked

PASSAGES = (
    "Northwind makes turbines. Its revenue rose 12 percent\nto 48 million dollars in 2025. The board was pleased.",
    "Zoë Müller became chief financial officer of Northwind in March 2024. She came from Contoso.",
    "The plant in Oslo closed on 4 May after a fire. Nobody was hurt in the fire.",
)


def context(*texts: str, budget: int = 1000) -> Context:
    return compress(
        ranked(*texts), query="", budget=budget, count_tokens=lambda text: len(text.split()), order=in_order
    )


def in_order(sources: object) -> list[int]:
    return list(range(len(sources)))  # type: ignore[arg-type]


def read(question: str, *texts: str, threshold: float = THRESHOLD) -> list[str]:
    selection = SentenceSelector(HashingEmbedder()).select(question, context(*texts), None, threshold=threshold)
    assert bool(selection.quotes) == (selection.score >= threshold)
    return [quote.text for quote in selection.quotes]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "How many million dollars was revenue in 2025?",
            "Its revenue rose 12 percent\nto 48 million dollars in 2025.",
        ),
        (
            "Who became chief financial officer of Northwind?",
            "Zoë Müller became chief financial officer of Northwind in March 2024.",
        ),
        ("When was the plant in Oslo closed?", "The plant in Oslo closed on 4 May after a fire."),
    ],
)
def test_the_sentence_that_answers_is_quoted(question: str, said: str) -> None:
    assert said in read(question, *PASSAGES)


def test_nothing_is_quoted_where_no_sentence_is_about_the_question() -> None:
    assert read("Which enzyme splits lactose in milk?", *PASSAGES) == []


def test_without_a_source_nothing_is_read() -> None:
    embedder = HashingEmbedder()
    selector = SentenceSelector(embedder)

    assert selector.select("Why?", context(), None).quotes == ()
    assert selector.candidates("Why?", context()).tokens == 0
    assert embedder.embedded == []


texts = st.lists(
    st.lists(
        st.sampled_from(["Rain fell.", "A fire 1 [2]", "売上高は増加した。", "Oslo\nis cold.", "Why?", ""]), max_size=6
    ).map(" ".join),
    max_size=4,
)


@settings(deadline=None)
@given(texts=texts, question=st.sampled_from(["Why?", "When did rain fall in Oslo?", "売上高", "", "fire 1"]))
def test_a_quote_is_the_slice_it_names_and_stands_in_reading_order(texts: list[str], question: str) -> None:
    found = context(*texts)
    quotes = SentenceSelector(HashingEmbedder()).select(question, found, None, threshold=0.0).quotes

    assert len(quotes) <= MOST_QUOTED
    places = [(quote.source.number, quote.span.start_char) for quote in quotes]
    assert places == sorted(set(places))
    for quote in quotes:
        held = quote.source.hit.chunk
        assert quote.source in found.sources
        assert quote.text == held.text[quote.span.start_char - held.start_char : quote.span.end_char - held.start_char]
        assert 0 < quote.score < 1


@settings(deadline=None)
@given(texts=texts)
def test_the_same_sentence_is_not_quoted_twice(texts: list[str]) -> None:
    selector = SentenceSelector(HashingEmbedder())
    quotes = selector.select("When did rain fall?", context(*texts), None, threshold=0.0).quotes

    said = [" ".join(quote.text.casefold().split()) for quote in quotes]
    assert len(said) == len(set(said))


def test_only_the_most_promising_sentences_are_embedded_and_all_of_that_is_counted() -> None:
    sentences = [f"Sentence {word} is about nothing." for word in "abcdefghijklmnopqrstuvwxyz"]
    found = context(" ".join(sentences), "Revenue rose in 2025.")
    embedder = HashingEmbedder(prompt_tokens=1)
    candidates = SentenceSelector(embedder).candidates("When did revenue rise?", found)

    assert len(candidates.sentences) == MOST_EMBEDDED
    assert "Revenue rose in 2025." in {sentence.text for sentence in candidates.sentences}
    read = sum(embedder.count_tokens(sentence.text) + 1 for sentence in candidates.sentences)
    assert candidates.tokens == read + embedder.count_query("When did revenue rise?")


def test_a_heading_that_stands_above_the_passage_is_no_sentence_of_it() -> None:
    under = replace(hit(chunk(text="# Revenue\n\nIt rose in 2025.", heading_path=("Revenue",))))
    found = compress([under], query="", budget=99, count_tokens=len)

    assert [sentence.text for sentence in sentences_of(found.sources)] == ["It rose in 2025."]


def test_a_name_the_question_brings_along_is_not_the_one_it_asks_for() -> None:
    sentences = sentences_of(context("It was in Oslo. It was Zoë Müller in Oslo.").sources)
    fits = [found.fits for found in features_of("Who was in Oslo?", sentences)]

    assert fits == [-1.0, 1.0]


def test_among_equals_the_one_nearer_to_the_question_scores_higher() -> None:
    sentences = sentences_of(context("Rain fell there. Rain fell here.").sources)
    features = features_of("Did rain fall?", sentences)

    first, second = score([features[0]] * 2, [0.2, 0.6])
    assert first < second


def test_a_source_that_retrieval_ranks_higher_scores_higher() -> None:
    sentences = sentences_of(context("Rain fell in town.", "In town, rain fell.").sources)
    first, second = score(features_of("Did rain fall?", sentences), [0.5, 0.5])

    assert first > second


def test_every_sentence_of_the_sources_is_looked_at() -> None:
    found = context(*PASSAGES)
    looked_at = " ".join(sentence.text for sentence in sentences_of(found.sources))

    assert re.sub(r"\s+", " ", looked_at) == re.sub(r"\s+", " ", " ".join(PASSAGES))
