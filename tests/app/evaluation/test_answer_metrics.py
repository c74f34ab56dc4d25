"""app.evaluation.answer_metrics against answers written by hand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.answers.answer import AbstentionReport, Answer, SourceReport, WindowUse
from app.answering.answers.parts import LeadPart, ProsePart, QuotePart, Reason, RefusedPart, paragraphs
from app.answering.citing.citation import Citation
from app.answering.metering.token_usage import ModelCall, Purpose, TokenUsage
from app.evaluation.answer_metrics import (
    abstention_score,
    answer_scores,
    cost_scores,
    gate_scores,
    marker_scores,
    refusal_scores,
)
from app.evaluation.said import first_of, nothing_said, quoted, said_in, words_of
from app.evaluation.squad import longest_common_f1
from app.evaluation.types import GoldSpan
from app.types import Components
from retrieval.types import Source, Span
from tests.retrieval.fakes import chunk, hit

ANSWERS = ("forty", "forty ships")
SEARCHED = ModelCall(purpose=Purpose.EMBED_QUERY, model="e", prompt_tokens=8)
WRITTEN = ModelCall(purpose=Purpose.ANSWER, model="m", prompt_tokens=97, completion_tokens=5)
IDS: Mapping[str, str] = {"doc_1": "harbour", "doc_2": "bakery"}
SPAN = GoldSpan("harbour", 10, 20, "ten chars!")


def citation(
    document_id: str, answer_start: int, *, start: int = 0, end: int = 30, index: int = 1, text: str = "x"
) -> Citation:
    return Citation(
        index=index,
        answer_start=answer_start,
        answer_end=answer_start + 3,
        document_id=document_id,
        version=1,
        filename="a.txt",
        chunk_id="c",
        page_start=None,
        page_end=None,
        start_char=start,
        end_char=end,
        cited_text=text,
        verified=True,
        support=1.0,
        origin="model",
    )


def answer(text: str, *citations: Citation, answered: bool = True) -> Answer:
    return Answer(
        id="a",
        model="m",
        reason=None if answered else Reason.NOT_IN_SOURCES,
        text=text,
        finish_reason="stop",
        citations=citations,
        parts=paragraphs((text, ProsePart if answered else partial(RefusedPart, reason=Reason.NOT_IN_SOURCES)))[1],
        sources=SourceReport(retrieved=2, presented=(), cited=(), compressed=(), dropped=()),
        usage=TokenUsage(Components(question=7, context=90), {}, (SEARCHED, WRITTEN)),
        budget=WindowUse(1000, 100, 97),
        timings_ms={"total": 12.5},
    )


def scores(said: Answer, answers: tuple[str, ...] = ANSWERS, *, spans: tuple[GoldSpan, ...] = (SPAN,)):
    return answer_scores(said_in(said), answers, relevant={"harbour"}, spans=spans, external_ids=IDS)


def markers(said: Answer, *, texts: Mapping[str, str] | None = None) -> dict[str, float]:
    """Against sources [1] of doc_1 and [2] of doc_2, whose texts are x or as given."""
    presented = [source(1, "doc_1"), source(2, "doc_2")]
    return marker_scores(said, sources=presented, slice_of=lambda found: (texts or {}).get(found.document_id, "x"))


def source(number: int, document_id: str) -> Source:
    found = hit(chunk(number, "x", document_id=document_id))
    return Source(number=number, hit=found, spans=(Span(0, 1),), header="", body="x", tokens=1, compressed=False)


def test_a_right_answer_with_a_right_citation_gets_full_scores() -> None:
    found = scores(answer("Forty ships. [1]", citation("doc_1", 13, text="It was forty.")))

    assert found == {
        "false_refusal": 0, "exact_match": 1, "f1": 1, "rouge_l": 1, "contains": 1, "verified": 1,
        "citation_recall": 1, "citation_precision": 1, "citation_answer": 1, "citation_span": 1,
        "right_recall": 1, "right_precision": 1, "unsure": 0, "first_contains": 1, "verified_wrong": 0,
    }  # fmt: skip


def test_an_answer_costs_time_and_tokens() -> None:
    assert cost_scores(answer("Forty.")) == {"latency": 12.5, "prompt_tokens": 105, "completion_tokens": 5}


def test_the_abstention_score_is_the_models_and_1_where_no_model_was_asked() -> None:
    said = answer("Forty.")

    assert abstention_score(said) is None
    assert abstention_score(replace(said, abstention=AbstentionReport("model", score=0.7, threshold=0.5))) == 0.7
    assert abstention_score(replace(said, abstention=AbstentionReport("retrieval", score=0.1, threshold=0.3))) == 1


def test_citation_markers_are_not_scored_as_words() -> None:
    said = answer("Forty[1] of the[2] ships", citation("doc_2", 15), citation("doc_1", 5))

    assert words_of(said) == "Forty of the ships"
    assert scores(said)["f1"] == pytest.approx(2 * (2 / 3) / (2 / 3 + 1))


def test_order_counts_for_rouge_and_not_for_f1() -> None:
    found = scores(answer("Ships forty."))

    assert (found["f1"], found["rouge_l"]) == (1, pytest.approx(2 / 3))  # beside "forty": 1/2 and 1


def test_a_wrong_citation_beside_a_right_one_halves_precision_and_leaves_recall() -> None:
    found = scores(answer("Forty.[1][1]", citation("doc_1", 6, start=20), citation("doc_2", 9)))

    assert (found["citation_precision"], found["citation_recall"], found["citation_span"]) == (0.5, 1, 0)


def test_a_passage_of_another_document_that_holds_the_answer_is_right_and_not_gold() -> None:
    found = scores(answer("Forty.[1]", citation("doc_2", 6, text="They were forty ships.")))

    assert (found["citation_precision"], found["citation_recall"]) == (0, 0)
    assert (found["right_precision"], found["right_recall"], found["citation_answer"]) == (1, 1, 1)


def test_a_passage_of_a_gold_document_is_right_without_holding_the_answer() -> None:
    found = scores(answer("Forty.[1][2]", citation("doc_1", 6), citation("doc_2", 9)))

    assert (found["right_precision"], found["right_recall"], found["citation_answer"]) == (0.5, 1, 0)


def test_an_answer_without_citations_has_no_precision_and_misses_recall() -> None:
    found = scores(answer("Forty."))

    assert (found["citation_recall"], found["right_recall"], found["verified"]) == (0, 0, 0)
    assert found.keys() & {"citation_precision", "right_precision", "citation_answer", "citation_span"} == set()


def test_one_verified_citation_is_enough() -> None:
    said = answer("Forty.[1][1]", replace(citation("doc_1", 6), verified=False), citation("doc_1", 9))

    assert scores(said)["verified"] == 1
    assert scores(answer("Forty.[1]", replace(citation("doc_1", 6), verified=False)))["verified"] == 0


def test_refusing_an_answerable_question_is_wrong_and_scores_no_words() -> None:
    found = scores(answer("forty is not in the sources", answered=False))

    assert found == {
        "false_refusal": 1, "unsure": 0, "exact_match": 0, "f1": 0, "rouge_l": 0, "contains": 0, "first_contains": 0,
    }  # fmt: skip
    assert scores(answer("", answered=False)) == scores(answer("forty", answered=False))


@pytest.mark.parametrize("answered", [True, False])
def test_an_unanswerable_question_is_scored_by_whether_it_was_refused(answered: bool) -> None:
    said = said_in(answer("Forty.", answered=answered))

    assert refusal_scores(said) == {"refusal": not answered}
    assert gate_scores(said, gated=False, holds_answer=False) == {"gate": 0, "model_refusal": not answered}
    assert gate_scores(said, gated=False, holds_answer=True) == {"gate": 0}


def test_a_refusal_before_generation_is_not_the_models() -> None:
    said = said_in(answer("No.", answered=False))

    assert gate_scores(said, gated=True, holds_answer=False) == {"gate": 1}


def test_without_gold_words_only_the_citations_and_the_refusal_count() -> None:
    found = scores(answer("Forty.[1]", citation("doc_1", 6)), (), spans=())

    assert found == {
        "false_refusal": 0, "verified": 1, "citation_recall": 1, "citation_precision": 1, "right_recall": 1,
        "right_precision": 1, "unsure": 0, "verified_wrong": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "passage", "wrong"),
    [("Forty.[1]", "x", 0), ("Nine.[1]", "x", 1), ("Nine.[1]", "It was forty.", 1)],
)
def test_a_verified_answer_without_the_gold_words_is_wrong(text: str, passage: str, wrong: float) -> None:
    said = answer(text, citation("doc_1", text.index("["), text=passage))

    assert scores(said)["verified_wrong"] == wrong
    assert "verified_wrong" not in scores(replace(said, citations=(replace(said.citations[0], verified=False),)))


@pytest.mark.parametrize(("documents", "wrong"), [(("doc_1", "doc_2"), 0), (("doc_2", "doc_1"), 1)])
def test_without_gold_words_a_verified_answer_is_wrong_by_its_first_citation(
    documents: tuple[str, str], wrong: float
) -> None:
    said = answer("Forty.[1][1]", citation(documents[0], 6), citation(documents[1], 9))

    assert scores(said, ())["verified_wrong"] == wrong


LED = "**Forty** [1]\n\n> It was forty. [1]\n>\n> Nine came. [2]"


def quote_of(text: str, quote: str) -> QuotePart:
    at = text.index(quote)
    end = at + len(quote)
    return QuotePart(start_char=at, end_char=end + len(" [1]"), quoted=Span(at, end))


def by_quotes(*, lead: bool = True, answered: bool = True) -> Answer:
    """An answer that quotes "It was forty." and "Nine came.", with "Forty" as its lead."""
    text = LED if lead else LED[LED.index(">") :]
    quotes = [quote_of(text, quote) for quote in ("It was forty.", "Nine came.")]
    led = LeadPart(start_char=0, end_char=13, words=Span(2, 7))
    marks = [citation("doc_1", match.start(), index=int(match[1])) for match in re.finditer(r"\[(\d)\]", text)]
    said = answer(text, *marks, answered=answered)
    return replace(
        said,
        reason=None if answered else Reason.UNSURE,
        parts=(led, *quotes) if lead else tuple(quotes),
        usage=TokenUsage(Components(), {}, (SEARCHED,)),
    )


def test_the_words_of_an_answer_by_quotes_are_the_quotes_and_its_lead_is_read_first() -> None:
    led, plain = by_quotes(), by_quotes(lead=False)

    assert words_of(led) == words_of(plain) == "It was forty.\nNine came."
    assert (first_of(led), first_of(plain)) == ("Forty", "It was forty.")
    assert (scores(led)["contains"], scores(led)["first_contains"]) == (1, 1)
    assert scores(led, ("nine",))["contains"] == 1
    assert scores(led, ("nine",))["first_contains"] == 0


def test_the_words_of_a_generated_answer_are_the_models_without_the_quotes_behind_it() -> None:
    text = "Forty. [1]\n\n> Nine came. [2]"
    said = answer(text, citation("doc_1", 7), citation("doc_2", text.index("Nine") + 11, index=2))
    said = replace(said, parts=(ProsePart(start_char=0, end_char=10), quote_of(text, "Nine came.")))

    assert "Forty." in words_of(said)
    assert "Nine" not in words_of(said)
    assert first_of(said) == words_of(said)


def test_the_nearest_passages_are_unsure_and_no_answer() -> None:
    said = by_quotes(lead=False, answered=False)

    found = scores(said)
    assert (found["unsure"], found["false_refusal"], found["contains"], found["first_contains"]) == (1, 1, 0, 0)
    assert refusal_scores(said_in(said)) == {"refusal": 1}


def test_quotes_are_scored_as_an_answer_and_none_is_a_refusal() -> None:
    said = quoted([("doc_1", Span(0, 30), "It was forty."), ("doc_2", Span(3, 9), "Bread.")])
    found = answer_scores(said, ANSWERS, relevant={"harbour"}, spans=(SPAN,), external_ids=IDS)

    assert (found["contains"], found["citation_precision"], found["citation_span"]) == (1, 0.5, 0.5)
    assert quoted([]) == nothing_said()
    assert refusal_scores(nothing_said()) == {"refusal": 1}


def test_footnotes_that_keep_their_promises() -> None:
    said = answer("Forty.[1] Nine.[2]", citation("doc_1", 6), citation("doc_2", 15, index=2))

    assert markers(said) == {"dangling": 0, "slices": 1}
    assert markers(answer("Nothing is cited.")) == {"dangling": 0}


@pytest.mark.parametrize(
    ("said", "dangling"),
    [
        (answer("Forty.[1]"), 1),  # a mark that leads nowhere
        (answer("Forty.[3]", citation("doc_1", 6, index=3)), 1),  # to what was not presented
        (answer("Forty.[2]", citation("doc_1", 6, index=2)), 1),  # to another document than the source's
        (answer("Forty.", citation("doc_1", 0)), 1),  # a citation without a mark
        (answer("Forty.[1] Nine.[9][7, 8]", citation("doc_1", 6)), 2),
        (answer("In 1898 [sic] [12345]."), 0),
    ],
)
def test_a_mark_or_citation_that_leads_to_no_presented_source_dangles(said: Answer, dangling: int) -> None:
    assert markers(said)["dangling"] == dangling


def test_a_cited_text_that_is_not_the_slice_is_found() -> None:
    said = answer("Forty.[1] Nine.[2]", citation("doc_1", 6), citation("doc_2", 15, index=2))

    assert markers(said, texts={"doc_2": "y"})["slices"] == 0.5


words = st.lists(st.sampled_from("abc"), max_size=7).map(" ".join)


@given(prediction=words, wanted=words)
def test_rouge_l_equals_its_definition_by_trying_every_subsequence(prediction: str, wanted: str) -> None:
    predicted, gold = prediction.replace("a", "x").split(), wanted.replace("a", "x").split()  # "a" is an article
    common = max(
        len(chosen)
        for size in range(len(predicted) + 1)
        for chosen in combinations(predicted, size)
        if _is_subsequence(chosen, gold)
    )
    expected = 2 * common / (len(predicted) + len(gold)) if predicted or gold else 1.0

    assert longest_common_f1(" ".join(predicted), [" ".join(gold)]) == pytest.approx(expected)


def _is_subsequence(chosen: Sequence[str], text: Sequence[str]) -> bool:
    rest = iter(text)
    return all(token in rest for token in chosen)
