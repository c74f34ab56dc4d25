"""Answers with a language model: it reads the sources in a prompt, and footnotes are put behind what it writes."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace

from app.answering.abstention import without_generation
from app.answering.answers.answer import QuotesFound, TextDelta
from app.answering.answers.parts import AnyPart, JsonPart, NoteCode, NotePart, ProsePart, Reason, RefusedPart, cited
from app.answering.citing.citation import Pages
from app.answering.generating.answer_writer import begin
from app.answering.generating.footnote_writer import FootnoteWriter
from app.answering.generating.generator import Generation, Generator
from app.answering.generating.held_text import HeldText
from app.answering.generating.prompts import Prompts
from app.answering.generating.refusing import after_generation, is_unconfirmed, refused_before_generation
from app.answering.languages.other_language import OtherLanguage
from app.answering.languages.question_kind import asks_for_words
from app.answering.languages.refusals import refuses
from app.answering.metering.meter import Meter
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.answering.quoting.passage_reader import OpenSelection, PassageReader
from app.answering.quoting.rendering import quotation
from app.answering.quoting.strategy import by_quotes
from app.answering.states.finished import Finished
from app.answering.states.reading import Selection
from app.answering.states.sources import Grounding, TokenBudget
from app.answering.states.strategy import Beginning, Sources
from app.answering.verification.json_leaves import unsupported_leaves
from app.answering.verification.metered_models import Verification
from app.errors import DeadlinePassed
from app.telemetry.timing import timed
from generation.types import Completion, Delta, FinishReason, JsonSchema, TokenLogprob
from retrieval.memo import Memo
from retrieval.types import Span


class Generating:
    """Answers with a language model: implements `Strategy`. One instance serves every request.

    >>> beginning = generating.begin(grounding, meter)
    """

    def __init__(
        self,
        *,
        generator: Generator,
        prompts: Prompts,
        passage_reader: PassageReader | None,
        verification: Verification,
        memo: Memo,
        quote_unverified: bool = False,
        sure_quotes_answer: bool = False,
    ) -> None:
        """Choose what reads, writes and verifies.

        Without what reads passages, words select what is repeated, and the model alone refuses. `quote_unverified`
        says whether quotes follow an answer of which nothing is verified. `sure_quotes_answer` says whether nothing
        is generated where quotes surely answer a question for a few words.
        """
        self._generator = generator
        self._prompts = prompts
        self._passage_reader = passage_reader
        self._verification = verification
        self._memo = memo
        self._quote_unverified = quote_unverified
        self._sure_quotes_answer = sure_quotes_answer

    def admit(self, question: Question) -> None:  # noqa: ARG002 - a model can answer every question
        """As `Strategy.admit`."""
        self._generator.require_room()

    def budget(self, question: Question) -> TokenBudget:
        """As `Strategy.budget`."""
        return self._prompts.budget(question)

    def begin(self, grounding: Grounding, meter: Meter) -> Beginning:
        """As `Strategy.begin`; the sources are not final before the engine accepts the prompt."""
        question = grounding.question
        selection: Selection | None = None
        with timed("read"):
            opened = self._opened(grounding, meter)
            if opened is not None:
                if opened.reads:
                    yield Sources(grounding, final=False)
                selection = opened.read()
        if not meter.closed and self._answers(question, selection):
            return by_quotes(grounding, selection)
        with timed("prompt"):
            shown, found = self._prompts.chosen(grounding, selection)
            prompt = self._prompts.prompt(shown, found)
        ended: Finished | None = None
        if meter.closed:
            ended = Finished.cancelled()
        elif question.dry_run or refused_before_generation(
            question, grounding.context, selection, rereads=self._prompts.asking.rereads
        ):
            ended = without_generation(grounding, selection)
            ended = ended.in_form(question)
        if ended is not None:
            return replace(ended, prompt=prompt, model=self._generator.model)
        return self.accepted(Prompted(shown, grounding.pages(), found, prompt), meter)

    def accepted(self, prompted: "Prompted", meter: Meter) -> "Written":
        """The answer to a prompt, accepted by the engine; raises as `Generator.begin`."""
        grounding = prompted.grounding
        generation = self._generator.begin(
            grounding.question, prompted.prompt, grounding.context, output=grounding.budget.output, meter=meter
        )
        events = self._events(prompted, generation, meter)
        quotes = _found(prompted) if self._replaces(prompted) else None
        return Written(
            prompted, quotes, events, lambda question, meter: self.accepted(prompted.for_question(question), meter)
        )

    async def _events(
        self, prompted: "Prompted", generation: Generation, meter: Meter
    ) -> AsyncGenerator[TextDelta | Finished, None]:
        """The events of an answer that the engine generates, as `Writing.events`."""
        grounding, selection = prompted.grounding, prompted.selection
        writer = begin(grounding, prompted.pages, meter, verification=self._verification, memo=self._memo)
        held = HeldText() if self._replaces(prompted) else None
        unreported: tuple[TokenLogprob, ...] = ()
        told = 0
        completion: Completion | None = None
        async for event in generation.stream:
            if isinstance(event, Delta):
                unreported += event.logprobs
                shown = await writer.write(event.text)
                if shown := shown if held is None else held.feed(shown):
                    new = tuple(writer.footnotes.citations[told:])
                    yield TextDelta(shown, unreported, part=0, citations=new)
                    unreported, told = (), told + len(new)
            else:
                completion = event
                await writer.finish()
        if unreported:
            yield TextDelta("", unreported)
        assert completion is not None, "a stream ends with its completion"
        model = self._generator.model
        if rest := "" if held is None else held.finish():
            if _refused(writer.footnotes, completion):
                nearest = _nearest(prompted, writer.footnotes, completion, generation.refused_from)
                yield replace(nearest, completion=completion, prompt=prompted.prompt, model=model)
                return
            yield TextDelta(rest, part=0)
        if self._quote_unverified:
            _quote(prompted, writer.footnotes, completion)
        finished = generated(grounding, writer.footnotes, completion, selection, generation.refused_from)
        yield replace(finished, prompt=prompted.prompt, model=model)

    def _answers(self, question: Question, selection: Selection | None) -> bool:
        """Whether quotes are the whole answer: they surely are one, to a question that a few words answer.

        A caller that gives instructions or asks for what quotes do not have wants the model's words (docs/adr/0093).
        """
        if not self._sure_quotes_answer or selection is None or not selection.decides or question.dry_run:
            return False
        wants_words = question.instructions or question.json_schema or question.sampling.logprobs is not None
        return not wants_words and selection.outcome == "answered" and asks_for_words(question.text)

    def _replaces(self, prompted: "Prompted") -> bool:
        """Whether quotes replace the model's text where it refuses: a reader has read the sources and found some."""
        question, selection = prompted.grounding.question, prompted.selection
        prose = question.json_schema is None and question.sampling.logprobs is None
        chosen = self._prompts.asking.passages is not None and self._quote_unverified
        return chosen and prose and selection is not None and selection.decides and bool(selection.quotes)

    def _opened(self, grounding: Grounding, meter: Meter) -> OpenSelection | None:
        """Selects quotes in the sources; None where some sources are summaries, whose words are in no document."""
        if self._passage_reader is None or not grounding.context.sources or grounding.summarised:
            return None
        if grounding.retrieved.overview is not None:
            return None  # nothing in it need be pointed at
        refused_from = self._prompts.limits.refused_from(grounding.question)
        return self._passage_reader.open(grounding, meter=meter, abstention=refused_from)


@dataclass(frozen=True, slots=True)
class Prompted:
    """Sources in a prompt, with what was selected in them before."""

    grounding: Grounding
    pages: Pages
    selection: Selection | None
    prompt: Prompt

    def for_question(self, question: Question) -> "Prompted":
        """The same sources and prompt, for another choice of the same question."""
        return replace(self, grounding=replace(self.grounding, question=question))


class Written:
    """An answer that a language model writes: implements `Writing`."""

    def __init__(
        self,
        prompted: Prompted,
        quotes: QuotesFound | None,
        events: AsyncGenerator[TextDelta | Finished, None],
        again: Callable[[Question, Meter], "Written"],
    ) -> None:
        self.prompted = prompted
        self.quotes = quotes
        self._events = events
        self._again = again

    def events(self) -> AsyncGenerator[TextDelta | Finished, None]:
        """As `Writing.events`."""
        return self._events

    def again(self, question: Question, meter: Meter) -> "Written":
        """As `Writing.again`."""
        return self._again(question, meter)


def generated(
    grounding: Grounding,
    footnotes: FootnoteWriter,
    completion: Completion,
    selection: Selection | None,
    refused_from: float | None,
) -> Finished:
    """The end of an answer that `footnotes` wrote from generated text; a refusal is followed by the note.

    `refused_from` is the probability of a refusal at the first token from which on the engine refused, None without.
    """
    error = str(DeadlinePassed()) if completion.finish_reason is FinishReason.DEADLINE else completion.error
    reason, abstention = after_generation(
        footnotes,
        completion,
        context=grounding.context,
        selection=selection,
        threshold=refused_from,
        failed=error is not None,
    )
    citations = tuple(footnotes.citations)
    probability: float | None = None
    if selection is not None:
        probability = selection.probability_of([(one.index, Span(one.start_char, one.end_char)) for one in citations])
        citations = tuple(one.judged(max(probability, one.answers or 0.0)) for one in citations)
    note = None if error else _note_behind(grounding, reason)
    return Finished(
        reason=Reason.ERROR if error else reason,
        abstention=abstention,
        text=footnotes.answer + ("" if note is None else f"\n\n{note.text}"),
        finish_reason=completion.finish_reason.value,
        citations=citations,
        parts=_parts(grounding, footnotes, reason, note=note, failed=error is not None),
        probability=probability,
        completion=completion,
        error=error,
    )


def _found(prompted: Prompted) -> QuotesFound:
    """The answer by quotes."""
    found = by_quotes(prompted.grounding, prompted.selection)
    markers = [Span(one.answer_start, one.answer_end) for one in found.citations]
    return QuotesFound(found.text, found.citations, cited(found.parts, markers), found.reason, found.probability)


def _nearest(
    prompted: Prompted, footnotes: FootnoteWriter, completion: Completion, refused_from: float | None
) -> Finished:
    """The quotes as the nearest passages, where a model that reads better than the reader finds no answer in them."""
    context, selection = prompted.grounding.context, prompted.selection
    assert selection is not None, "only quotes that were found replace a text"
    _, report = after_generation(
        footnotes, completion, context=context, selection=selection, threshold=refused_from, failed=False
    )
    unsure = by_quotes(prompted.grounding, replace(selection, outcome="unsure"))
    return replace(unsure, abstention=report)


def _refused(footnotes: FootnoteWriter, completion: Completion) -> bool:
    """Whether a whole text is a refusal."""
    whole = completion.finish_reason is FinishReason.STOP and completion.error is None
    return whole and refuses(footnotes.answer, cited=bool(footnotes.citations))


def _quote(prompted: Prompted, footnotes: FootnoteWriter, completion: Completion) -> None:
    """Put quotes behind an answer of which nothing is verified, or in the place of one that was withheld.

    They were selected before generation (docs/adr/0067).
    """
    grounding, selection = prompted.grounding, prompted.selection
    if selection is None or not selection.quotes:
        return
    if is_unconfirmed(grounding.question, grounding.context, footnotes, completion):
        footnotes.quote(quotation(selection.quotes, form=grounding.question.format, pages=prompted.pages))


def _parts(
    grounding: Grounding,
    footnotes: FootnoteWriter,
    reason: Reason | None,
    *,
    note: OtherLanguage | None,
    failed: bool,
) -> tuple[AnyPart, ...]:
    """What the model wrote, the quotes behind it, and the note, which begins a paragraph behind them.

    A generation that failed has refused nothing, whatever it had written by then.
    """
    question = grounding.question
    parts: list[AnyPart] = []
    if own := footnotes.own:
        sources = grounding.context.sources
        if isinstance(asked := question.constraint(len(sources)), JsonSchema):
            unsupported = unsupported_leaves(footnotes.answer, sources, schema=asked.schema)
            parts.append(JsonPart(start_char=0, end_char=own, unsupported=unsupported))
        elif reason is not None and not failed:
            parts.append(RefusedPart(start_char=0, end_char=own, reason=reason))
        else:
            uncited = () if reason is not None else tuple(footnotes.uncited)
            parts.append(ProsePart(start_char=0, end_char=own, uncited=uncited))
    parts += footnotes.quotes
    if note is not None:
        start = len(footnotes.answer) + len("\n\n")
        end, code = start + len(note.text), NoteCode.OTHER_LANGUAGE
        parts.append(NotePart(start_char=start, end_char=end, code=code, language=note.language))
    return tuple(parts)


def _note_behind(grounding: Grounding, reason: Reason | None) -> OtherLanguage | None:
    """What follows a refusal that a model wrote in prose; nothing where its log probabilities go with the text."""
    question = grounding.question
    prose = question.json_schema is None and question.sampling.logprobs is None
    return grounding.note if prose and reason is not None and reason.refuses else None
