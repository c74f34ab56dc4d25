"""What the generator is shown: how much room there is, which of the hits fit, and the prompt around them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.auxiliary import Calls
from app.instrumentation import station
from app.language import answer_in
from app.locating import AnswerSpan, Located, Locator
from app.prompt import Prompt, build_prompt, fence_tokens, pointing_tokens, quoted
from app.question import Limits, Question
from app.quoting import Quoter
from app.reading_order import reading_order
from app.summaries import Summarised, Summariser
from app.wording import Wording
from generation.ports import Engine, Tokenizer
from retrieval.arrangement import Order
from retrieval.compress import compress
from retrieval.highlights import Highlight, highlights, pointer_to
from retrieval.types import Context, Hit, Source

_EMPTY = Context(sources=(), dropped=(), tokens=0)
_HIGHLIGHTED = 6  # one part in so many of the room, at most, is for sentences that are read again

_SENTENCES = 2  # that may answer a question between them

Running = Callable[[Calls], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens: the context window, what is reserved for the output, what the sources may have; `head` precedes them."""

    window: int
    max_output: int
    context: int
    head: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Presented:
    """What fits and the prompt that shows it, and where a reader saw an answer in it.

    `cancelled` says that the person left while summaries were made.
    """

    context: Context
    prompt: Prompt
    located: Located | None = None
    summarised: tuple[str, ...] = ()
    summary_tokens: int = 0
    cancelled: bool = False


class Presenter:
    """Presents hits to a generator; where answers are quoted (`quotes`) nobody reads a prompt and there is none."""

    def __init__(
        self,
        *,
        engine: Engine,
        tokenizer: Tokenizer,
        limits: Limits,
        wording: Wording,
        summariser: Summariser | None,
        locator: Locator | None,
        guide: Quoter | None,
        quotes: bool,
    ) -> None:
        """Without a summariser what does not fit is dropped; without a locator words alone say where to look.

        The guide points at sentences where a question asks for more than the locator's few words.
        """
        self._engine = engine
        self._tokenizer = tokenizer
        self._limits = limits
        self._wording = wording
        self._summariser = summariser
        self._locator = locator
        self._guide = guide
        self._quotes = quotes

    def room(self, question: Question) -> Room:
        """How much a question leaves for sources.

        Raises:
            ContextLengthExceeded: There is no room for any context.
        """
        if self._quotes:
            room = question.max_context_tokens or self._limits.max_context_tokens
            return Room(room, 0, room, ())
        empty = self._prompt(question, context=_EMPTY, grounded=True)
        fixed = empty.components.total + question.top_k * fence_tokens(self._tokenizer)
        fixed += pointing_tokens(self._tokenizer, self._wording)
        window = self._engine.info.context_window
        max_output, context = self._limits.room(question, window=window, fixed=fixed)
        return Room(window, max_output, context, empty.head)

    def present(self, question: Question, hits: tuple[Hit, ...], *, room: Room, running: Running) -> Presented:
        """What of the hits fits, and the prompt.

        Args:
            question: As it is asked.
            hits: Best first; none where nothing found is evidence.
            room: What `room` said of the question.
            running: Told of the summariser's calls while they run.
        """
        again = min(self._limits.highlight_tokens, room.context // _HIGHLIGHTED)
        found = Summarised(_EMPTY)
        if hits:
            with station("compress"):
                found = self._fitted(question, hits, budget=room.context - again, head=room.head, running=running)
        grounded = bool(found.context.sources) or question.on_no_evidence == "refuse"
        with station("read"):
            located = self._located(question, found)
        with station("prompt"):
            prompt = self._prompt(question, context=found.context, grounded=grounded, again=again, located=located)
        return Presented(
            context=found.context,
            prompt=prompt,
            located=located,
            summarised=found.chunk_ids,
            summary_tokens=found.tokens,
            cancelled=found.cancelled,
        )

    def _fitted(
        self, question: Question, hits: tuple[Hit, ...], *, budget: int, head: tuple[int, ...], running: Running
    ) -> Summarised:
        """What fits, in the order that has most of it cached, and summaries of the rest by setting."""
        salt = question.principal.tenant_id

        def count(text: str) -> int:
            return self._tokenizer.count(quoted(text))

        order: Order = _best_first
        if not self._quotes:
            order = reading_order(
                self._tokenizer, head=head, cached=lambda prompt: self._engine.cached_tokens(prompt, salt=salt)
            )

        def fit(budget: int) -> Context:
            return compress(hits, query=question.text, budget=budget, count_tokens=count, order=order)

        if self._summariser is None or question.dry_run:  # a dry run generates nothing
            return Summarised(fit(budget))
        calls = Calls(question)
        with running(calls):
            return self._summariser.fitted(question, hits, budget=budget, fit=fit, order=order, calls=calls)

    def _located(self, question: Question, found: Summarised) -> Located | None:
        """Where the sources answer; None where some of them are summaries, whose words stand nowhere."""
        if self._locator is None or found.chunk_ids or found.cancelled:
            return None
        asked, default = question.abstention_threshold, self._limits.abstention_threshold
        located = self._locator.located(question, found.context.sources, abstention=default if asked is None else asked)
        if located is None and self._guide is not None:
            return self._guide.located(question, found.context)
        return located

    def _prompt(
        self,
        question: Question,
        *,
        context: Context,
        grounded: bool,
        again: int = 0,
        located: Located | None = None,
    ) -> Prompt:
        if self._quotes:
            return Prompt(())
        count = self._tokenizer.count
        pointers: list[Highlight] = []
        for span in _pointed(located):
            pointer = pointer_to(span.source.number, span.source.hit.chunk.document_id, span.span, span.text)
            if (tokens := count(pointer.line)) <= again:
                again -= tokens
                pointers.append(pointer)
        return build_prompt(
            self._tokenizer,
            question=question.text,
            context=context,
            history=question.history,
            instructions="\n".join(filter(None, (question.instructions, answer_in(question.text)))),
            grounded=grounded,
            json_schema=question.json_schema,
            highlights=highlights(
                context.sources,
                query=question.text,
                budget=again,
                count_tokens=count,
                first=[(pointer.number, pointer.span) for pointer in pointers],
            ),
            pointers=pointers,
            wording=self._wording,
        )


def _best_first(sources: Sequence[Source]) -> list[int]:
    """The order of sources that people read, not a model."""
    return list(range(len(sources)))


def _pointed(located: Located | None) -> Sequence[AnswerSpan]:
    """What the generator is pointed at: the likeliest words, or more than one sentence where words do not settle it."""
    if located is None:
        return ()
    return located.likely[: 1 if located.settles else _SENTENCES]
