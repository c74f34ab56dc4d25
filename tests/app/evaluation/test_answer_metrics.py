"""app.evaluation.answer_metrics against answers written by hand."""

from collections.abc import Mapping

import pytest

from app.answer import Answer, Budget, SourceReport, TokenUsage
from app.citations import Citation
from app.evaluation.answer_metrics import answer_scores, words_of
from app.evaluation.types import GoldSpan, SetQuestion
from app.types import Components

QUESTION = SetQuestion("q", "How many ships?", answers=("forty", "forty ships"))
IDS: Mapping[str, str] = {"doc_1": "harbour", "doc_2": "bakery"}
SPAN = GoldSpan("harbour", 10, 20, "ten chars!")


def citation(document_id: str, answer_start: int, *, start: int = 0, end: int = 30) -> Citation:
    return Citation(
        index=1,
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
        cited_text="x",
        verified=True,
        support=1.0,
        origin="model",
    )


def answer(text: str, *citations: Citation, answered: bool = True) -> Answer:
    return Answer(
        id="a",
        model="m",
        answered=answered,
        reason=None if answered else "not_in_sources",
        text=text,
        finish_reason="stop",
        citations=citations,
        uncited=(),
        sources=SourceReport(retrieved=2, presented=(), cited=(), compressed=(), dropped=()),
        usage=TokenUsage(Components(question=7, context=90), 5, 0, {}, 8),
        budget=Budget(1000, 100, 97),
        timings_ms={"total": 12.5},
    )


def scores(said: Answer, question: SetQuestion = QUESTION, *, spans: tuple[GoldSpan, ...] = (SPAN,)):
    return answer_scores(said, question, relevant={"harbour"}, spans=spans, external_ids=IDS)


def test_a_right_answer_with_a_right_citation() -> None:
    found = scores(answer("Forty ships. [1]", citation("doc_1", 13)))

    assert found == {
        "latency": 12.5, "prompt_tokens": 97, "completion_tokens": 5, "false_refusal": 0, "exact_match": 1, "f1": 1,
        "contains": 1, "citation_recall": 1, "citation_precision": 1, "citation_span": 1,
    }  # fmt: skip


def test_markers_are_not_words() -> None:
    said = answer("Forty[1] of the[2] ships", citation("doc_2", 15), citation("doc_1", 5))

    assert words_of(said) == "Forty of the ships"
    assert scores(said)["f1"] == pytest.approx(2 * (2 / 3) / (2 / 3 + 1))


def test_a_wrong_citation_beside_a_right_one_halves_precision_and_leaves_recall() -> None:
    found = scores(answer("Forty.[1][1]", citation("doc_1", 6, start=20), citation("doc_2", 9)))

    assert (found["citation_precision"], found["citation_recall"], found["citation_span"]) == (0.5, 1, 0)


def test_an_answer_without_citations_has_no_precision_and_misses_recall() -> None:
    found = scores(answer("Forty."))

    assert found["citation_recall"] == 0
    assert "citation_precision" not in found
    assert "citation_span" not in found


def test_refusing_an_answerable_question_is_wrong_and_scores_no_words() -> None:
    found = scores(answer("forty is not in the sources", answered=False))

    assert (found["false_refusal"], found["exact_match"], found["f1"], found["contains"]) == (1, 0, 0, 0)
    assert "citation_recall" not in found


@pytest.mark.parametrize("answered", [True, False])
def test_an_unanswerable_question_has_only_its_refusal(answered: bool) -> None:
    found = scores(answer("Forty.", answered=answered), SetQuestion("q", "Who?", unanswerable=True))

    assert found.keys() == {"latency", "prompt_tokens", "completion_tokens", "refusal"}
    assert found["refusal"] == (not answered)


def test_without_gold_words_only_the_citations_and_the_refusal_count() -> None:
    found = scores(answer("Forty.[1]", citation("doc_1", 6)), SetQuestion("q", "How many?"), spans=())

    assert found.keys() & {"exact_match", "f1", "contains", "citation_span"} == set()
    assert found["citation_precision"] == 1
