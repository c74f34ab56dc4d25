"""Scores of an answer: its words, its citations, whether it rightly refuses, and what it cost."""

from collections.abc import Collection, Mapping, Sequence

from app.answer import Answer
from app.citations import Citation
from app.evaluation.squad import contains_any, exact_match, f1
from app.evaluation.types import GoldSpan, SetQuestion


def answer_scores(
    answer: Answer,
    question: SetQuestion,
    *,
    relevant: Collection[str],
    spans: Sequence[GoldSpan],
    external_ids: Mapping[str, str],
) -> dict[str, float]:
    """The scores that apply to this question, each in [0, 1] but for tokens and milliseconds.

    An unanswerable question has `refusal` alone. An answerable one has `false_refusal`; word scores
    where there are gold answers (a refusal scores 0); and, when answered and there are judgments,
    `citation_recall` (any citation is of a relevant document), `citation_precision` (share of the
    citations that are) and `citation_span` (share that overlap a gold span), the last two only with
    citations.

    Args:
        answer: What the application said.
        question: What was asked.
        relevant: The question set's ids of the documents judged relevant.
        spans: Gold spans located in the canonical texts.
        external_ids: The question set's document ids by the application's.
    """
    scores = {
        "latency": float(answer.timings_ms["total"] or 0.0),
        "prompt_tokens": float(answer.usage.components.total),
        "completion_tokens": float(answer.usage.completion_tokens),
    }
    if question.unanswerable:
        return {"refusal": float(not answer.answered), **scores}
    scores["false_refusal"] = float(not answer.answered)
    if question.answers:
        said = words_of(answer) if answer.answered else ""
        scores["exact_match"] = exact_match(said, question.answers)
        scores["f1"] = f1(said, question.answers)
        scores["contains"] = float(contains_any(said, question.answers))
    if answer.answered and relevant:
        right = [external_ids.get(citation.document_id) in relevant for citation in answer.citations]
        scores["citation_recall"] = float(any(right))
        if right:
            scores["citation_precision"] = sum(right) / len(right)
        if right and spans:
            scores["citation_span"] = _share_meeting(answer.citations, spans, external_ids)
    return scores


def words_of(answer: Answer) -> str:
    """The answer's text without its citation markers."""
    pieces, at = [], 0
    for citation in sorted(answer.citations, key=lambda citation: citation.answer_start):
        pieces.append(answer.text[at : citation.answer_start])
        at = citation.answer_end
    return "".join([*pieces, answer.text[at:]])


def _share_meeting(citations: Sequence[Citation], spans: Sequence[GoldSpan], external_ids: Mapping[str, str]) -> float:
    meeting = [
        any(
            external_ids.get(citation.document_id) == span.document_id
            and citation.start_char < span.end
            and span.start < citation.end_char
            for span in spans
        )
        for citation in citations
    ]
    return sum(meeting) / len(meeting)
