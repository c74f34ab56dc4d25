"""Builds the context of a prompt: which hits fit, in which order, with summaries and highlights, and the prompt."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.answering.abstention import threshold_for
from app.answering.calls import CallNumber, Calls
from app.answering.language import answer_in, is_english
from app.answering.locator import AnswerSpan, Located, Locator
from app.answering.prompt import Prompt, build_prompt, fence_tokens, pointing_tokens, quoted, shown
from app.answering.question import Limits, Question
from app.answering.quoting.quoter import Quoter
from app.answering.summaries import Summarised, Summariser
from app.answering.wording import Wording
from app.telemetry.stations import station
from generation.ports import Engine, Tokenizer
from generation.prefix import order_for_reuse
from retrieval.compress import Order, compress, edges_first
from retrieval.footnote_numbers import header_of, number_at
from retrieval.highlights import Highlight, highlights, pointer_to
from retrieval.types import Context, Hit, Source

_WHOLE_BLOCK = 64  # tokens; no cache has larger blocks


def reading_order(tokenizer: Tokenizer, *, head: Sequence[int], cached: Callable[[Sequence[int]], int]) -> Order:
    """An order for `retrieval.compress` that reuses the engine's prefix cache.

    Sources whose keys and values are cached directly behind their prefix come first; the others follow, best first.
    Where no source is cached, the order is `edges_first`.

    Args:
        tokenizer: The serving tokenizer.
        head: Token ids of the prompt before the first source.
        cached: How many tokens of a prompt are cached from its beginning, for this tenant.
    """

    def order(sources: Sequence[Source]) -> list[int]:
        def render(source: int, place: int) -> list[int]:
            found = sources[source]
            return shown(tokenizer, header=header_of(number_at(place), found.hit.chunk), body=found.body)

        if len(head) >= _WHOLE_BLOCK and not cached(head):  # then nothing behind it is cached either
            return edges_first(sources)
        planned = order_for_reuse(len(sources), head=head, render=render, cached=cached)
        known = bool(planned) and cached([*head, *render(planned[0], 0)]) > len(head)
        return planned if known else edges_first(sources)

    return order


_EMPTY = Context(sources=(), dropped=(), tokens=0)
_HIGHLIGHTED = 6  # at most 1/6 of the context is for sentences that are repeated behind the question

_SENTENCES = 2  # the most that the model is pointed at

Running = Callable[[Calls], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Room:
    """The tokens of the context window, the output and the sources; `head` are the token ids before the sources."""

    window: int
    max_output: int
    context: int
    head: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """The sources that fit, the prompt that shows them, and the spans where a reader found an answer.

    `cancelled` says that the client left while summaries were generated.
    """

    context: Context
    prompt: Prompt
    located: Located | None = None
    summarised: tuple[str, ...] = ()
    summary_tokens: int = 0
    cancelled: bool = False


class ContextBuilder:
    """Builds the sources and prompt of a generator; where quotes are the answer there is no prompt."""

    def __init__(
        self,
        *,
        engine: Engine,
        tokenizer: Tokenizer,
        limits: Limits,
        wording: Wording,
        summariser: Summariser | None,
        locator: Locator | None,
        quoter: Quoter | None,
    ) -> None:
        """Without a summariser hits that do not fit are dropped; without a locator words select highlights.

        A quoter with the call FIND_SENTENCES points at sentences where a few words cannot answer a question.
        """
        self._engine = engine
        self._tokenizer = tokenizer
        self._limits = limits
        self._wording = wording
        self._summariser = summariser
        self._locator = locator
        self._guide = quoter if quoter is not None and CallNumber.FIND_SENTENCES in quoter.calls else None
        self._quotes = quoter is not None and CallNumber.ANSWER in quoter.calls

    def room(self, question: Question) -> Room:
        """The tokens that a question leaves for sources.

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

    def build(self, question: Question, hits: tuple[Hit, ...], *, room: Room, running: Running) -> BuiltContext:
        """The context of those hits that fit, and its prompt.

        Args:
            question: The question, rewritten to stand alone.
            hits: Best first; none where nothing that was found is evidence.
            room: The result of `room` for the question.
            running: Registers the summariser's calls while they run.
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
        return BuiltContext(
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
        """The sources that fit, in the order with most of them cached; with a summariser also summaries of the rest."""
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
        """The spans that answer; None where some sources are summaries, whose words are in no document."""
        if self._locator is None or found.chunk_ids or found.cancelled:
            return None
        sources = found.context.sources
        located = self._locator.locate(question, sources, abstention=threshold_for(question, self._limits))
        if located is None and self._guide is not None and sources and is_english(question.text):
            selection = self._guide.select(question, found.context, None, call=CallNumber.FIND_SENTENCES)
            return selection.as_pointers()
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
    """The order of sources that are quoted to people and read by no model."""
    return list(range(len(sources)))


def _pointed(located: Located | None) -> Sequence[AnswerSpan]:
    """The pointers in the prompt: the likeliest words, or several sentences where words do not decide."""
    if located is None:
        return ()
    return located.likely[: 1 if located.decides else _SENTENCES]
