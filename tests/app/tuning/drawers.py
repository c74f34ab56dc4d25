"""A question set about items in drawers: an answer stands in one passage, and every passage looks like the others."""

from collections.abc import Sequence

from app.evaluation.types import QuestionSet, SetDocument, SetQuestion
from app.tuning.adapter.examples import spans
from app.tuning.adapter.packs import Corpus

FIRST = 10000  # five digits: no year, and no number a question is changed to
FILLER = "The label of this one is {} and nobody has read it for a long while. "


def drawers(count: int = 40, *, filler: int = 0, name: str = "drawers") -> QuestionSet:
    """`count` passages of ten articles, each with its question; `filler` sentences stand before and behind."""
    documents, questions, judgments = {}, {}, {}
    for place in range(count):
        number = FIRST + place
        before = "".join(FILLER.format(f"{number}a{sentence}") for sentence in range(filler))
        behind = "".join(" " + FILLER.format(f"{number}b{sentence}").strip() for sentence in range(filler))
        text = f"{before}The item {number} is kept in drawer d{number} of the hall.{behind}"
        documents[f"p{place}"] = SetDocument(f"p{place}", f"Cabinet {place % 10}", text)
        questions[f"q{place}"] = SetQuestion(f"q{place}", question_of(number), (f"drawer d{number}",))
        judgments[f"q{place}"] = {f"p{place}": 1}
    return QuestionSet(
        name=name, documents=documents, questions=questions, judgments=judgments, spans={}, fingerprint="0" * 64
    )


def question_of(number: int) -> str:
    """What is asked about an item."""
    return f"where is item {number} kept"


def corpus_of(question_set: QuestionSet) -> Corpus:
    """The set with an example for every answer that stands in its passage."""
    return Corpus(question_set, spans(question_set))


def numbers(texts: Sequence[str]) -> list[int]:
    """The items the passages are about."""
    return [int(text.split("The item ")[1].split()[0]) for text in texts]
