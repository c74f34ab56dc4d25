"""Scores an answer: its words, its citations, its refusals and its cost."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from app.answering.answers.answer import Answer
from app.answering.citing.citation import Citation
from app.evaluation.said import Footnote, Said
from app.evaluation.squad import contains_any, exact_match, f1, longest_common_f1
from app.evaluation.types import GoldSpan
from retrieval.footnote_numbers import marker
from retrieval.types import Source

_MARKER = re.compile(r"\[\s*\d{1,3}(?:\s*[,;]\s*\d{1,3})*\s*\]")


def answer_scores(
    said: Said,
    answers: Sequence[str],
    *,
    relevant: Collection[str],
    spans: Sequence[GoldSpan],
    external_ids: Mapping[str, str],
) -> dict[str, float]:
    """The scores of an answerable question that apply, each in [0, 1].

    Always `false_refusal` (also where the nearest passages are shown) and `unsure` (those alone); word scores where
    there are gold answers (a refusal scores 0), `first_contains` being `contains` of the lead or first quote. When
    answered, `verified` (any citation is) and, of those that are, `verified_wrong` (no gold answer is in the words;
    without gold answers: the first citation is of no relevant document). When answered and there are judgments,
    `citation_recall` (any citation is of a relevant document) and, with citations, `citation_precision` (share of
    the citations that are); when answered and there is a gold document or answer to go by, `right_recall` (any citation
    is right: of a relevant document, or its passage holds a gold answer) and, with citations, `right_precision`.
    With citations also `citation_answer` (share whose passage holds a gold answer) where there are gold answers, and
    `citation_span` (share that overlap a gold span) where there are spans.

    Args:
        said: The answer's text.
        answers: Gold answers, alternatives.
        relevant: The question set's ids of the documents judged relevant.
        spans: Gold spans located in the canonical texts.
        external_ids: The question set's document ids by the application's.
    """
    scores = {"false_refusal": float(not said.answered), "unsure": float(said.unsure)}
    if answers:
        words = said.words if said.answered else ""
        scores["exact_match"] = exact_match(words, answers)
        scores["f1"] = f1(words, answers)
        scores["rouge_l"] = longest_common_f1(words, answers)
        scores["contains"] = float(contains_any(words, answers))
        scores["first_contains"] = float(contains_any(said.first if said.answered else "", answers))
    if not said.answered:
        return scores
    footnotes = said.footnotes
    of_gold = [external_ids.get(found.document_id) in relevant for found in footnotes]
    holding = [contains_any(found.text, answers) for found in footnotes]
    scores["verified"] = float(any(found.verified for found in footnotes))
    if scores["verified"] and (relevant or answers):
        right = [one or other for one, other in zip(of_gold, holding, strict=True)]
        scores["verified_wrong"] = float(not (right[0] if not answers else contains_any(said.words, answers)))
    if relevant:
        scores |= _recall_and_precision("citation", of_gold)
    if relevant or answers:
        scores |= _recall_and_precision("right", [one or other for one, other in zip(of_gold, holding, strict=True)])
    if answers and footnotes:
        scores["citation_answer"] = sum(holding) / len(holding)
    if spans and footnotes:
        scores["citation_span"] = _share_meeting(footnotes, spans, external_ids)
    return scores


def refusal_scores(said: Said) -> dict[str, float]:
    """The score of an unanswerable question: 1 for a refusal, else 0."""
    return {"refusal": float(not said.answered)}


def gate_scores(said: Said, *, gated: bool, holds_answer: bool) -> dict[str, float]:
    """Shows which stage refused: `gate` is 1 when retrieval found no evidence and no model was called.

    Where nothing holds an answer, `model_refusal` is the refusal of those that the model was asked.
    """
    scores = {"gate": float(gated)}
    if not gated and not holds_answer:
        scores["model_refusal"] = float(not said.answered)
    return scores


def abstention_score(answer: Answer) -> float | None:
    """The probability of a refusal, in [0, 1]; None where it is unknown (a remote model).

    The model's probability of refusing; 1 where nothing was evidence, for then no model was asked.
    """
    if answer.abstention.stage == "retrieval":
        return 1.0
    return answer.abstention.score


def cost_scores(answer: Answer) -> dict[str, float]:
    """An answer's cost: `latency` in milliseconds, `prompt_tokens` and `completion_tokens`."""
    return {
        "latency": float(answer.timings_ms["total"] or 0.0),
        "prompt_tokens": float(answer.usage.prompt_tokens),
        "completion_tokens": float(answer.usage.completion_tokens),
    }


def marker_scores(
    answer: Answer, *, sources: Sequence[Source], slice_of: Callable[[Citation], str]
) -> dict[str, float]:
    """Checks that an answer's footnotes are exact.

    `dangling`: how many marks `[n]` of its text, or citations, have no presented source. With
    citations, `slices`: the share whose `cited_text` is the canonical text at its offsets.

    Args:
        answer: An answer or a refusal: the same checks apply.
        sources: The presented sources.
        slice_of: The canonical text that a citation's offsets bound, in the version it names.
    """
    presented = {source.number: source.hit.chunk.document_id for source in sources}
    marks = {match.span() for match in _MARKER.finditer(answer.text)}
    places = {(found.answer_start, found.answer_end) for found in answer.citations}
    backed = {
        (found.answer_start, found.answer_end)
        for found in answer.citations
        if presented.get(found.index) == found.document_id
        and answer.text[found.answer_start : found.answer_end] == marker(found.index)
    }
    scores = {"dangling": float(len((marks | places) - backed))}
    if answer.citations:
        exact = [slice_of(found) == found.cited_text for found in answer.citations]
        scores["slices"] = sum(exact) / len(exact)
    return scores


def _recall_and_precision(name: str, right: Sequence[bool]) -> dict[str, float]:
    scores = {f"{name}_recall": float(any(right))}
    if right:
        scores[f"{name}_precision"] = sum(right) / len(right)
    return scores


def _share_meeting(footnotes: Sequence[Footnote], spans: Sequence[GoldSpan], external_ids: Mapping[str, str]) -> float:
    meeting = [
        any(
            external_ids.get(found.document_id) == span.document_id
            and found.span.start_char < span.end
            and span.start < found.span.end_char
            for span in spans
        )
        for found in footnotes
    ]
    return sum(meeting) / len(meeting)
