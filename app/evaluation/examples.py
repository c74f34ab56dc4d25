"""Picks the worst questions of a run, with expected and actual results shortened for reading."""

from collections.abc import Mapping, Sequence
from typing import Literal

from app.evaluation.record import Example, ExampleDocument
from app.evaluation.types import QuestionSet, SetQuestion

_EXAMPLES = 8  # of each kind
_SHOWN = 3  # documents found, in an example
_SHOWN_CHARS = 400


def worst_rankings(
    question_set: QuestionSet,
    questions: Sequence[SetQuestion],
    *,
    rankings: Mapping[str, Sequence[str]],
    scores: Mapping[str, float],
) -> list[Example]:
    """Imperfect rankings, worst first; `rankings` and `scores` are keyed by question."""
    worst = sorted((found for found in questions if scores[found.id] < 1), key=lambda found: scores[found.id])
    return [
        _example(question_set, "retrieval", question, scores[question.id], found=rankings[question.id])
        for question in worst[:_EXAMPLES]
    ]


def worst_answers(
    question_set: QuestionSet,
    questions: Sequence[SetQuestion],
    *,
    said: Mapping[str, str],
    scores: Mapping[str, float],
) -> list[Example]:
    """Imperfect answers, worst first; `said` and `scores` are keyed by question, unscored ones are left out."""
    asked = [question for question in questions if scores.get(question.id, 1.0) < 1]
    return [
        _example(question_set, "answer", question, scores[question.id], found=(), answer=said[question.id])
        for question in sorted(asked, key=lambda question: scores[question.id])[:_EXAMPLES]
    ]


def _example(
    question_set: QuestionSet,
    kind: Literal["retrieval", "answer"],
    question: SetQuestion,
    score: float,
    *,
    found: Sequence[str],
    answer: str | None = None,
) -> Example:
    gold = question_set.relevant(question.id)
    return Example(
        kind=kind,
        id=question.id,
        question=_shortened(question.text),
        score=score,
        gold=[_passage(question_set, document, gold=True) for document in sorted(gold)[:_SHOWN]],
        found=[_passage(question_set, document, gold=document in gold) for document in found[:_SHOWN]],
        answers=[_shortened(text) for text in question.answers[:_SHOWN]],
        answer=None if answer is None else _shortened(answer),
    )


def _passage(question_set: QuestionSet, document_id: str, *, gold: bool) -> ExampleDocument:
    document = question_set.documents[document_id]
    return ExampleDocument(id=document_id, title=_shortened(document.title), text=_shortened(document.text), gold=gold)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
