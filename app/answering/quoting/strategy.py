"""Answers with quotes, without a language model: the sentences of the sources that answer, exactly as they stand."""

from collections.abc import Generator
from dataclasses import replace

from app.answering.abstention import without_generation
from app.answering.languages.refusals import sources_disagree
from app.answering.metering.meter import Meter
from app.answering.prompt import quoted
from app.answering.question import AnswerDefaults, Question
from app.answering.quoting.overview_quotes import quotes_of
from app.answering.quoting.passage_reader import PassageReader, answered_from
from app.answering.quoting.quotable import require_quotable
from app.answering.quoting.rendering import quotation, unconfirmed
from app.answering.quoting.selection import leads
from app.answering.states.finished import Finished
from app.answering.states.reading import Extract, Selection
from app.answering.states.sources import Grounding, Overview, TokenBudget
from app.answering.states.strategy import Beginning, Sources
from app.telemetry.timing import timed
from generation.errors import ContextLengthExceeded
from generation.ports import Tokenizer
from retrieval.compress import best_first

_WHOLE_OVERVIEW = 1 << 16  # tokens; some twenty chunks are never more


class Quoting:
    """Answers with quotes: implements `Strategy`. One instance serves every request.

    >>> quoting = Quoting(passage_reader=passage_reader, tokenizer=tokenizer, limits=limits, window=8192)
    >>> beginning = quoting.begin(grounding, meter)
    """

    def __init__(
        self, *, passage_reader: PassageReader, tokenizer: Tokenizer, limits: AnswerDefaults, window: int
    ) -> None:
        """A question of more than `window` tokens of `tokenizer` is refused, as it is where a model answers."""
        self._passage_reader = passage_reader
        self._tokenizer = tokenizer
        self._limits = limits
        self._window = window

    def admit(self, question: Question) -> None:
        """As `Strategy.admit`; quotes are never too busy."""
        require_quotable(question)

    def budget(self, question: Question) -> TokenBudget:
        """All room is the sources': quotes need none.

        Raises:
            ContextLengthExceeded: The question alone is too long.
        """
        asked = self._tokenizer.count(question.text)
        if asked > self._window:  # refused before anything is read or paid for
            raise ContextLengthExceeded(prompt_tokens=asked, max_tokens=0, context_window=self._window)
        room = question.max_context_tokens or self._limits.max_context_tokens
        return TokenBudget(
            window=room,
            output=0,
            sources=room,
            overview=max(room, _WHOLE_OVERVIEW),
            count=self._count,
            order=best_first,
        )

    def begin(self, grounding: Grounding, meter: Meter) -> Beginning:
        """As `Strategy.begin`; once the first model may read the sources, nothing refuses the answer."""
        selection: Selection | None = None
        with timed("read"):
            if grounding.context.sources and not grounding.question.dry_run:
                selection = yield from self._selected(grounding, meter)
        return Finished.cancelled() if meter.closed else by_quotes(grounding, selection)

    def selection(self, grounding: Grounding, meter: Meter) -> Selection | None:
        """The quotes that answer, for there are sources; None where no part of an overview fits. Blocks.

        Raises as `begin`.
        """
        if grounding.retrieved.overview is not None:
            return self._of_overview(grounding, grounding.retrieved.overview)
        return self._passage_reader.open(grounding, meter=meter, abstention=self._refused_from(grounding)).read()

    def _selected(self, grounding: Grounding, meter: Meter) -> Generator[Sources, None, Selection | None]:
        overview = grounding.retrieved.overview
        if overview is not None:  # no model need find quotes in it
            return self._of_overview(grounding, overview)
        opened = self._passage_reader.open(grounding, meter=meter, abstention=self._refused_from(grounding))
        if opened.reads:
            yield Sources(grounding, final=True)
        return opened.read()

    def _of_overview(self, grounding: Grounding, overview: Overview) -> Selection | None:
        return quotes_of(overview, grounding.context, answered=answered_from(self._refused_from(grounding)))

    def _refused_from(self, grounding: Grounding) -> float | None:
        return self._limits.refused_from(grounding.question)

    def _count(self, text: str) -> int:
        """The tokens of a document's text as a prompt would show it."""
        return self._tokenizer.count(quoted(text))


def by_quotes(grounding: Grounding, selection: Selection | None) -> Finished:
    """The answer that consists of the selected quotes, or its refusal."""
    question = grounding.question
    finished = without_generation(grounding, selection)
    if selection is None or not selection.quotes:
        return finished.in_form(question)
    found = quotation(
        selection.quotes,
        form=question.format,
        pages=grounding.pages(),
        lead=_lead(question, selection),
        opening=finished.text,
        conflict=selection.conflict if finished.reason is None else None,
        disagree=sources_disagree(question.text),
    )
    found = found if finished.reason is None and not found.conflicts else unconfirmed(found)
    parts = found.parts if question.format == "json" else (*finished.parts, *found.parts)
    return replace(finished, text=found.text, citations=found.citations, parts=parts, conflicts=found.conflicts)


def _lead(question: Question, selection: Selection) -> Extract | None:
    """The quote whose words lead the answer: a document's title, or the likeliest where a few words answer."""
    if selection.title is not None and selection.outcome == "answered":
        return selection.title
    return selection.quotes[0] if leads(question.text, selection) else None
