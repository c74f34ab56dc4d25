"""Checks drafted questions by asking them: kept are those that the document answers at the right place.

A question is asked through the selection that answers everyone's (`app.answering.quoting`): first of all documents that
the caller may read, then of the document alone, as the page asks it. It is kept if both times it is answered, the first
quote is the sentence that it was made from, and the words marked in it are the answer. Those whose answers count as
confirmed both times go first. What the document is about is asked before all others, since no model has to read for
that, and is kept where fewer than three are confirmed; confirmed, it goes before those that are not.
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
        confirmed: Whether the answer is confirmed; else it is given, from this very sentence, and not confirmed.
    """

    question: str
    quote: Span
    answer: str
    confirmed: bool = True


class Select(Protocol):
    """Selects the quotes that answer a question; `Answerer.selection` is one."""

    def __call__(self, question: Question, /, *, meter: Meter) -> Selection | None:
        """The quotes; None where the question gets a reply without them, or no sources are found."""
        ...


@dataclass(frozen=True, slots=True)
class _First:
    """The first quote of an answer, and whether the page will confirm it: not where the sources disagree."""

    quote: Extract
    confirmed: bool


class DocumentCheck:
    """Asks the questions of one document. The calls of each are numbered by a choice of its own on the ledger."""

    def __init__(
        self, asking: Question, document_id: str, *, select: Select, meter_of: Callable[[Question], Meter]
    ) -> None:
        """Ask nothing yet.

        Args:
            asking: Its principal pays, and its scope is everything that may be read; its text does not count.
            document_id: The document that the proposals are of.
            select: Finds the quotes.
            meter_of: Makes the meter of a question; it may wait, and close it later.
        """
        scope = Scope(
            tenant_id=asking.scope.tenant_id, collection_ids=asking.scope.collection_ids, document_ids=(document_id,)
        )
        self._everywhere = asking
        self._of_document = replace(asking, scope=scope)
        self._document_id = document_id
        self._select = select
        self._meter_of = meter_of

    def passes(self, proposal: Proposal, *, alone: bool, choice: int) -> Suggestion | None:
        """The suggestion that a proposal becomes; None where it is not answered as it must be."""
        first = self._answer(self._everywhere, proposal, choice=choice)
        if first is None:
            return None
        again = first if alone else self._answer(self._of_document, proposal, choice=choice + 1)
        if again is None:
            return None
        quote = first.quote
        return Suggestion(proposal.question, quote.span, quote.words, first.confirmed and again.confirmed)

    def about(self, question: str) -> Suggestion | None:
        """The suggestion to ask what the document is about, which its opening and headings answer; no model reads them.

        None where they are no answer.
        """
        found = self._first(self._of_document, question, choice=2 * MOST_TRIED)
        return None if found is None else Suggestion(question, found.quote.span, found.quote.text, found.confirmed)

    def _answer(self, asking: Question, proposal: Proposal, *, choice: int) -> _First | None:
        found = self._first(asking, proposal.question, choice=choice)
        if found is None or not _overlap(found.quote.span, proposal.sentence):
            return None
        marked = found.quote.highlight
        return found if marked is not None and _overlap(marked, proposal.answer) else None

    def _first(self, asking: Question, text: str, *, choice: int) -> _First | None:
        """The first quote of an answer, where it is the likeliest and this document's."""
        question = replace(asking, text=text, choice=choice)
        try:
            selection = self._select(question, meter=self._meter_of(question))
        except ContextLengthExceeded:
            return None
        if selection is None or selection.outcome != "answered" or not selection.quotes:
            return None
        quote = max(selection.quotes, key=lambda one: one.score)
        at_hand = quote.source.hit.chunk.document_id == self._document_id
        if not at_hand or quote is not selection.quotes[0]:
            return None
        return _First(quote, confirmed=quote.score >= CONFIRMED and selection.conflict is None)


def checked(
    proposals: Iterable[Proposal],
    *,
    check: DocumentCheck,
    alone: bool,
    about: Suggestion | None = None,
    stopping: Callable[[], bool] = lambda: False,
    before_each: Callable[[], None] = lambda: None,
    on_kept: Callable[[tuple[Suggestion, ...]], None] = lambda _: None,
) -> tuple[Suggestion, ...]:
    """At most `MOST_KEPT` questions that pass, the confirmed first; asks `MOST_TRIED` at most.

    Args:
        proposals: The most promising first.
        check: Asks them of their document.
        alone: Whether nothing else may be read, so that a question need not be asked twice.
        about: What `DocumentCheck.about` found; it is kept where fewer than `MOST_KEPT` are confirmed.
        stopping: Whether to ask no more, for the server stops.
        before_each: Called before each proposal is asked.
        on_kept: Called with the confirmed ones so far, each time another is.

    Raises:
        BudgetExceeded, StoreUnavailable, StorageFull: A model's call was not reserved, and not made.
        RetrievalError: A model failed.
    """
    kept: list[Suggestion] = []
    likely: list[Suggestion] = []
    sure = (about,) if about is not None and about.confirmed else ()
    for number, proposal in enumerate(proposals):
        if len(kept) == MOST_KEPT or number == MOST_TRIED:
            break
        before_each()
        if stopping():
            break
        if any(_overlap(proposal.sentence, one.quote) for one in kept):
            continue
        found = check.passes(proposal, alone=alone, choice=2 * number)
        if found is None:
            continue
        if not found.confirmed:
            likely.append(found)
            continue
        kept.append(found)
        on_kept((*kept, *sure)[:MOST_KEPT])
    room = MOST_KEPT - len(sure)
    for found in likely:
        if len(kept) < room and not any(_overlap(found.quote, one.quote) for one in kept):
            kept.append(found)
    if about is not None and len(kept) < MOST_KEPT:
        kept.append(about)
    return tuple(sorted(kept, key=lambda one: not one.confirmed))


def _overlap(one: Span, other: Span) -> bool:
    return one.start_char < other.end_char and other.start_char < one.end_char
