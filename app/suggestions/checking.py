"""Checks drafted questions by asking them: kept are those that the document answers, confirmed and at the right place.

A question is asked through the selection that answers everyone's (`app.answering.quoting`): first of all documents that
the caller may read, then of the document alone, as the page asks it. It is kept if both times the first quote is the
sentence that it was made from, the words marked in it are the answer, and the answer counts as confirmed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from app.answering.citing.citation import CONFIRMED
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.states.reading import Extract, Selection
from app.suggestions.drafting import Proposal
from generation.errors import ContextLengthExceeded
from retrieval.types import Scope, Span

MOST_KEPT = 3
MOST_TRIED = 20
"""Questions asked of one document at most, those that are not kept included."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question that a document answers. Spans are characters of its version.

    Attributes:
        question: Its text.
        quote: What is quoted as the answer.
        answer: The words in it that answer, as they are in the document.
    """

    question: str
    quote: Span
    answer: str


class Select(Protocol):
    """Selects the quotes that answer a question; `Answerer.selection` is one."""

    def __call__(self, question: Question, /, *, meter: Meter) -> Selection | None:
        """The quotes; None where the question is not about content, or no sources are found."""
        ...


def checked(
    proposals: Iterable[Proposal],
    *,
    asking: Question,
    document_id: str,
    alone: bool,
    select: Select,
    meter_of: Callable[[Question], Meter],
    stopping: Callable[[], bool] = lambda: False,
    on_kept: Callable[[tuple[Suggestion, ...]], None] = lambda _: None,
) -> tuple[Suggestion, ...]:
    """At most `MOST_KEPT` questions that pass, of as many forms as there are; asks `MOST_TRIED` at most.

    Args:
        proposals: The most promising first.
        asking: Its principal pays, and its scope is everything that may be read; its text does not count.
        document_id: The document that the proposals are of.
        alone: Whether nothing else may be read, so that a question need not be asked twice.
        select: Finds the quotes.
        meter_of: Makes the meter of a question; it may wait, and close it later.
        stopping: Whether to ask no more, for the server stops.
        on_kept: Called with all that have passed so far, each time another one has.

    Raises:
        BudgetExceeded, StoreUnavailable, StorageFull: A model's call was not reserved, and not made.
        RetrievalError: A model failed.
    """
    scope = Scope(
        tenant_id=asking.scope.tenant_id, collection_ids=asking.scope.collection_ids, document_ids=(document_id,)
    )
    check = _Check(asking, document_id, None if alone else scope, select, meter_of)
    kept: list[Suggestion] = []
    used: set[Span] = set()
    for number, proposal in enumerate(proposals):
        if len(kept) == MOST_KEPT or number == MOST_TRIED or stopping():
            break
        if any(_overlap(proposal.sentence, span) for span in used):
            continue
        found = check.passes(proposal, choice=2 * number)
        if found is not None:
            kept.append(found)
            used.add(found.quote)
            on_kept(tuple(kept))
    return tuple(kept)


class _Check:
    """Asks the questions of one document. The calls of each are numbered by a choice of its own on the ledger."""

    def __init__(
        self,
        asking: Question,
        document_id: str,
        alone: Scope | None,
        select: Select,
        meter_of: Callable[[Question], Meter],
    ) -> None:
        """`alone` is the scope of the document alone, None where that is everything."""
        self._everywhere = asking
        self._alone = None if alone is None else replace(asking, scope=alone)
        self._document_id = document_id
        self._select = select
        self._meter_of = meter_of

    def passes(self, proposal: Proposal, *, choice: int) -> Suggestion | None:
        """The suggestion that a proposal becomes; None where it is not answered as it must be."""
        first = self._answer(self._everywhere, proposal, choice=choice)
        if first is None:
            return None
        if self._alone is not None and self._answer(self._alone, proposal, choice=choice + 1) is None:
            return None
        return Suggestion(proposal.question, first.span, first.words)

    def _answer(self, asking: Question, proposal: Proposal, *, choice: int) -> Extract | None:
        question = replace(asking, text=proposal.question, choice=choice)
        try:
            selection = self._select(question, meter=self._meter_of(question))
        except ContextLengthExceeded:
            return None
        if selection is None or selection.outcome != "answered" or not selection.quotes:
            return None
        quote = max(selection.quotes, key=lambda one: one.score)
        if quote is not selection.quotes[0] or quote.source.hit.chunk.document_id != self._document_id:
            return None
        if quote.score < CONFIRMED or not _overlap(quote.span, proposal.sentence):
            return None
        marked = quote.highlight
        return quote if marked is not None and _overlap(marked, proposal.answer) else None


def _overlap(one: Span, other: Span) -> bool:
    return one.start_char < other.end_char and other.start_char < one.end_char
