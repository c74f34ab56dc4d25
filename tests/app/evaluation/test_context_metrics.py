"""app.evaluation.retrieval_metrics: what was retrieved and is kept, and nothing about what was not retrieved."""

from dataclasses import replace

import pytest

from app.evaluation.retrieval_metrics import context_scores
from app.evaluation.types import GoldSpan
from retrieval.compress import compress
from retrieval.types import Context, Hit, Source, Span
from tests.retrieval.fakes import chunk, hit

TEXT = "Forty ships came. Then fog came in. Nine went home."
HIT = hit(replace(chunk(1, TEXT), external_id="d"))
OTHER = hit(replace(chunk(2, "Bread is baked at dawn.", document_id="doc_2"), external_id="e"))
FORTY = GoldSpan("d", 0, 5, "Forty")
NINE = GoldSpan("d", 36, 40, "Nine")


def context(*pieces: tuple[int, int]) -> Context:
    """Only these pieces of HIT."""
    if not pieces:
        return Context(sources=(), dropped=(), tokens=0)
    body = " … ".join(TEXT[start:end] for start, end in pieces)
    spans = tuple(Span(start, end) for start, end in pieces)
    source = Source(number=1, hit=HIT, spans=spans, header="[1]\n", body=body, tokens=9, compressed=True)
    return Context(sources=(source,), dropped=(), tokens=9)


def scores(kept: Context, hits: tuple[Hit, ...] = (HIT, OTHER), answers=("forty",), spans=(FORTY, NINE)):
    return context_scores(hits, kept, answers=answers, spans=spans, relevant={"d", "e", "f"})


def test_keeping_half_of_the_spans_and_documents_scores_one_half() -> None:
    found = scores(context((0, 17)))

    assert found == {"tokens": 9, "spans": 0.5, "answers": 1, "words": 1, "documents": 0.5}


def test_an_empty_context_scores_zero_everywhere() -> None:
    found = scores(context())

    assert found == {"tokens": 0, "spans": 0, "answers": 0, "words": 0, "documents": 0}


def test_a_span_that_lost_a_character_is_lost() -> None:
    assert scores(context((1, 17)), spans=(FORTY,))["spans"] == 0


def test_what_was_not_retrieved_is_not_counted() -> None:
    elsewhere = GoldSpan("f", 0, 5, "Forty")

    found = context_scores([OTHER], context(), answers=["forty"], spans=[FORTY, elsewhere], relevant={"d"})

    assert found == {"tokens": 0}


def test_words_are_compared_with_those_that_were_retrieved() -> None:
    found = scores(context((0, 17)), answers=("Forty ships and nine whales",), spans=())

    assert "answers" not in found
    assert found["words"] == pytest.approx((2 / 5) / (3 / 5))


def test_with_room_for_everything_compression_loses_nothing() -> None:
    whole = compress([HIT, OTHER], query="How many ships?", budget=1000, count_tokens=len)

    found = scores(whole)

    assert (found["spans"], found["answers"], found["words"], found["documents"]) == (1, 1, 1, 1)
