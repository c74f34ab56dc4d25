"""Chooses the documents that a question is asked about when a fixed number is presented.

A question is asked once in each case that applies: an answerable one of its gold documents beside the best
ranked others (`answerable`), and of documents that have nothing to do with it (`off-topic`); an unanswerable
one of the passage it was written about, or else of what is found for it (`near-miss`).
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.evaluation.types import QuestionSet, SetQuestion

Group: TypeAlias = Literal["answerable", "near-miss", "off-topic"]

_ABOUT = "context_id"  # metadata of squad2-dev: the passage a question was written about, answerable or not


@dataclass(frozen=True, slots=True)
class Case:
    """A question and the documents it is asked about; `group` None means the whole collection."""

    question: SetQuestion
    group: Group | None = None

    @property
    def holds_answer(self) -> bool:
        """Whether the presented documents hold an answer, according to the set's judgments."""
        return not self.question.unanswerable and self.group != "off-topic"


def cases(questions: Sequence[SetQuestion], *, presented: int | None) -> list[Case]:
    """All cases of the questions in order; with `presented` None each question has one case, the whole collection."""
    if presented is None:
        return [Case(question) for question in questions]
    found: list[Case] = []
    for question in questions:
        if question.unanswerable:
            found.append(Case(question, "near-miss"))
        else:
            found += [Case(question, "answerable"), Case(question, "off-topic")]
    return found


def gold_documents(question_set: QuestionSet, question: SetQuestion) -> tuple[str, ...]:
    """The relevant documents, or the one the question was written about, sorted by id."""
    relevant = question_set.relevant(question.id)
    if not relevant and question.metadata.get(_ABOUT) in question_set.documents:
        return (question.metadata[_ABOUT],)
    return tuple(sorted(relevant))


def presented_documents(
    case: Case,
    question_set: QuestionSet,
    *,
    count: int,
    ranked: Sequence[str],
    readable: Collection[str],
    seed: int,
) -> tuple[str, ...]:
    """The ids in the set of the documents the case is asked of: `count`, or all there are when there are fewer.

    Args:
        case: With a group.
        question_set: The case's question is of it.
        count: At least as many as the question has gold documents.
        ranked: The documents retrieved for the question in the whole collection, best first.
        readable: The documents that can be searched.
        seed: Chooses the off-topic ones: neither gold, nor of a gold document's article (the same title),
            nor ranked.
    """
    assert case.group is not None, "a case without a group is asked of everything"
    gold = gold_documents(question_set, case.question)
    assert len(gold) <= count, "who samples leaves such questions out"
    if case.group != "off-topic":
        others = [document for document in ranked if document not in gold and document in readable]
        return (*gold, *others[: count - len(gold)])
    articles = {question_set.documents[document].title for document in gold} - {""}
    near = {*gold, *ranked}
    far = [
        document.id
        for document in question_set.documents.values()
        if document.id in readable and document.id not in near and document.title not in articles
    ]
    far.sort(key=lambda document: _place(seed, case.question.id, document))
    return tuple(far[:count])


def _place(seed: int, *names: str) -> bytes:
    return hashlib.blake2b("\0".join((str(seed), *names)).encode(), digest_size=16).digest()
