"""Builds the context of a prompt: which hits fit, in which order, with summaries and highlights, and the prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.answering.abstention import threshold_for
from app.answering.citation import Pages, layouts
from app.answering.generating.prompt_layout import build_prompt, fence_tokens, pointing_tokens, shown
from app.answering.generating.summaries import Summarised, Summariser
from app.answering.generating.wording import Wording
from app.answering.languages.recognition import answer_in
from app.answering.metering.meter import Meter
from app.answering.prompt import Prompt, quoted
from app.answering.question import Limits, Question
from app.answering.question_kind import asks_for_words
from app.answering.quoting.quoter import Quoter
from app.answering.quoting.quotes import Selection, answered_from
from app.answering.retrieving.overviews import Overview
from app.answering.retrieving.retriever import Retrieved
from app.db.contents import ContentRepository
from app.telemetry.stations import station
from generation.errors import ContextLengthExceeded
from generation.ports import Engine, Tokenizer
from generation.prefix import order_for_reuse
from retrieval.compress import Order, compress, edges_first
from retrieval.footnote_numbers import header_of, number_at
from retrieval.highlights import Highlight, highlights, pointer_to
from retrieval.types import Context, Hit, Source, Span

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

_UNREAD_OVERVIEW = 1 << 16  # tokens; some twenty chunks are never more


@dataclass(frozen=True, slots=True)
class Room:
    """The tokens of the context window, the output and the sources; `head` are the token ids before the sources."""

    window: int
    max_output: int
    context: int
    head: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """The sources that fit, the prompt that shows them, and the quotes in them that may answer."""

    context: Context
    prompt: Prompt
    selection: Selection | None = None
    summarised: tuple[str, ...] = ()


def _unannounced(_: BuiltContext) -> None:
    """What happens by default when the sources are known: nothing."""


class ContextBuilder:
    """Builds the sources of an answer, selects quotes from them, and builds the prompt of a generator."""

    def __init__(
        self,
        *,
        engine: Engine,
        tokenizer: Tokenizer,
        limits: Limits,
        wording: Wording,
        contents: ContentRepository,
        summariser: Summariser | None,
        quoter: Quoter | None,
    ) -> None:
        """Without a summariser hits that do not fit are dropped; without a quoter words select highlights."""
        self._engine = engine
        self._tokenizer = tokenizer
        self._limits = limits
        self._wording = wording
        self._contents = contents
        self._summariser = summariser
        self._quoter = quoter

    def room(self, question: Question, *, prompted: bool = True) -> Room:
        """The tokens that a question leaves for sources.

        Args:
            question: The question, rewritten to stand alone.
            prompted: Whether a language model will read them; quotes need no room but the sources' own.

        Raises:
            ContextLengthExceeded: There is no room for any context, or the question alone is longer than the window.
        """
        window = self._engine.info.context_window
        if not prompted:
            asked = self._tokenizer.count(question.text)
            if asked > window:  # refused as a generated answer is, before anything is read or paid for
                raise ContextLengthExceeded(prompt_tokens=asked, max_tokens=0, context_window=window)
            room = question.max_context_tokens or self._limits.max_context_tokens
            return Room(room, 0, room, ())
        empty = self._prompt(question, context=_EMPTY, grounded=True)
        fixed = empty.components.total + question.top_k * fence_tokens(self._tokenizer)
        fixed += pointing_tokens(self._tokenizer, self._wording)
        max_output, context = self._limits.room(question, window=window, fixed=fixed)
        return Room(window, max_output, context, empty.head)

    def build(
        self,
        question: Question,
        retrieved: Retrieved,
        *,
        room: Room,
        meter: Meter,
        prompted: bool = True,
        on_sources: Callable[[BuiltContext], None] = _unannounced,
    ) -> BuiltContext:
        """The context of those hits that fit, its quotes, and its prompt.

        Args:
            question: The question, rewritten to stand alone.
            retrieved: The hits for it.
            room: The result of `room` for the question.
            meter: Meters summaries and the selection of quotes; closing it stops them.
            prompted: Whether a language model will read the sources; otherwise the prompt is empty.
            on_sources: Called with the sources before a model reads them to find quotes, if one does.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: A model's call was not reserved, and not made.
        """
        again = min(self._limits.highlight_tokens, room.context // _HIGHLIGHTED)
        found = Summarised(_EMPTY)
        if retrieved.hits:
            with station("compress"):
                found = self._fitted(
                    question,
                    retrieved.hits,
                    budget=_budget(room, again=again, prompted=prompted, overview=retrieved.overview),
                    head=room.head,
                    meter=meter,
                    prompted=prompted,
                )
        grounded = bool(found.context.sources) or question.on_no_evidence == "refuse"
        built = BuiltContext(found.context, Prompt(()), summarised=found.chunk_ids)
        with station("read"):
            selection = self._selection(
                question,
                found,
                retrieved,
                meter=meter,
                prompted=prompted,
                on_accepted=lambda: on_sources(built),
            )
        prompt = built.prompt
        if prompted:
            with station("prompt"):
                prompt = self._prompt(
                    question, context=found.context, grounded=grounded, again=again, selection=selection
                )
        return replace(built, prompt=prompt, selection=selection)

    def pages(self, question: Question, context: Context) -> Pages:
        """The pages of the sources, by which citations name them."""
        return layouts(self._contents, context, tenant_id=question.principal.tenant_id)

    def _fitted(
        self,
        question: Question,
        hits: tuple[Hit, ...],
        *,
        budget: int,
        head: tuple[int, ...],
        meter: Meter,
        prompted: bool,
    ) -> Summarised:
        """The sources that fit, in the order with most of them cached; with a summariser also summaries of the rest."""
        salt = question.principal.tenant_id
        order: Order = _best_first
        if prompted:
            order = reading_order(
                self._tokenizer, head=head, cached=lambda prompt: self._engine.cached_tokens(prompt, salt=salt)
            )

        def fit(budget: int) -> Context:
            return compress(hits, query=question.text, budget=budget, count_tokens=self._count, order=order)

        if self._summariser is None or question.dry_run or not prompted:  # nothing is generated
            return Summarised(fit(budget))
        return self._summariser.fitted(question, hits, budget=budget, fit=fit, order=order, meter=meter)

    def _selection(
        self,
        question: Question,
        found: Summarised,
        retrieved: Retrieved,
        *,
        meter: Meter,
        prompted: bool,
        on_accepted: Callable[[], None],
    ) -> Selection | None:
        """The quotes in the sources; None where some sources are summaries, whose words are in no document."""
        if self._quoter is None or not found.context.sources or found.chunk_ids:
            return None
        if question.dry_run and not prompted:
            return None  # the quotes would be the answer, which a dry run does not give
        abstention = threshold_for(question, self._limits)
        if retrieved.overview is not None:  # no model need find quotes in it, nor point a language model at them
            return None if prompted else retrieved.overview.selection(found.context, answered=answered_from(abstention))
        return self._quoter.select(
            question,
            found.context,
            vector=retrieved.vector,
            meter=meter,
            abstention=abstention,
            on_accepted=on_accepted,
        )

    def _prompt(
        self,
        question: Question,
        *,
        context: Context,
        grounded: bool,
        again: int = 0,
        selection: Selection | None = None,
    ) -> Prompt:
        pointers: list[Highlight] = []
        for source, span, text in _pointed(question, selection):
            pointer = pointer_to(source.number, source.hit.chunk.document_id, span, text)
            if (tokens := self._count(pointer.line)) <= again:
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
                count_tokens=self._count,
                first=[(pointer.number, pointer.span) for pointer in pointers],
            ),
            pointers=pointers,
            wording=self._wording,
        )

    def _count(self, text: str) -> int:
        """The tokens of a document's text as the prompt shows it."""
        return self._tokenizer.count(quoted(text))


def _budget(room: Room, *, again: int, prompted: bool, overview: Overview | None) -> int:
    """The tokens of the sources: an overview that no model reads is not cut, its chunks are few."""
    if prompted:
        return room.context - again
    return room.context if overview is None else max(room.context, _UNREAD_OVERVIEW)


def _best_first(sources: Sequence[Source]) -> list[int]:
    """The order of sources that are quoted to people and read by no model."""
    return list(range(len(sources)))


def _pointed(question: Question, selection: Selection | None) -> Sequence[tuple[Source, Span, str]]:
    """The pointers in the prompt: the likeliest words where words answer, else the likeliest quotes."""
    if selection is None or not selection.decides or not selection.quotes:
        return ()
    best = selection.quotes[0]
    if asks_for_words(question.text):
        if selection.outcome != "answered" or best.highlight is None:
            return ()
        return ((best.source, best.highlight, best.words),)
    return tuple((quote.source, quote.span, quote.text) for quote in selection.quotes[:_SENTENCES])
