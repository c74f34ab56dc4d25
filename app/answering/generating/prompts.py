"""Builds prompts: how much room they leave to sources, in which order sources come, what is repeated and pointed at."""

from collections.abc import Callable, Sequence

from app.answering.generating.choosing import chosen
from app.answering.generating.model_class import Asking
from app.answering.generating.prompt_layout import build_prompt, fence_tokens, pointing_tokens, shown
from app.answering.languages.question_kind import asks_for_words
from app.answering.languages.recognition import answer_in
from app.answering.prompt import Prompt, quoted
from app.answering.question import AnswerDefaults, Question
from app.answering.states.reading import Selection
from app.answering.states.sources import NO_SOURCES, Grounding, Overflow, TokenBudget
from generation.ports import Engine, Tokenizer
from generation.prefix import order_for_reuse
from retrieval.compress import Order, best_first, edges_first
from retrieval.footnote_numbers import header_of, number_at
from retrieval.highlights import Highlight, highlights, pointer_to
from retrieval.types import Context, Source, Span

_WHOLE_BLOCK = 64  # tokens; no cache has larger blocks
_REPEATED = 6  # at most 1/6 of the context is for sentences that are repeated behind the question
_SENTENCES = 2  # the most that the model is pointed at
_LENGTHS = {
    "short": "Answer in one short sentence.",
    "long": "Answer in full: tell everything that the sources say about it.",
}


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


class Prompts:
    """Builds the prompts of answers. One instance serves every request.

    >>> prompt = prompts.prompt(grounding, selection)
    """

    def __init__(
        self,
        *,
        engine: Engine,
        tokenizer: Tokenizer,
        limits: AnswerDefaults,
        asking: Asking,
        overflow: Overflow | None = None,
    ) -> None:
        """Without `overflow`, hits that do not fit are left out."""
        self._engine = engine
        self._tokenizer = tokenizer
        self.limits = limits
        self.asking = asking
        self._overflow = overflow

    def budget(self, question: Question) -> TokenBudget:
        """The room that a prompt and the answer leave to the sources of a question that was understood.

        Raises:
            ContextLengthExceeded: There is no room for any context.
        """
        empty = self._prompt(question, NO_SOURCES, selection=None, repeated=0, grounded=True)
        fixed = empty.components.total + question.top_k * fence_tokens(self._tokenizer)
        fixed += pointing_tokens(self._tokenizer, self.asking.wording) if self.asking.pointed else 0
        window = self._engine.info.context_window
        output, sources = self.limits.room(question, window=window, fixed=fixed)
        repeated = min(self.limits.highlight_tokens, sources // _REPEATED) if self.asking.pointed else 0
        salt = question.principal.tenant_id
        reused = reading_order(
            self._tokenizer, head=empty.head, cached=lambda ids: self._engine.cached_tokens(ids, salt=salt)
        )
        return TokenBudget(
            window=window,
            output=output,
            sources=sources - repeated,
            overview=sources - repeated,
            repeated=repeated,
            count=self._count,
            order=best_first if self.asking.passages is not None else reused,
            overflow=None if question.dry_run else self._overflow,
        )

    def chosen(self, grounding: Grounding, selection: Selection | None) -> tuple[Grounding, Selection | None]:
        """The grounding with the sources that the model reads, and the selection with their numbers."""
        return chosen(grounding, selection, self.asking, count_tokens=self._count)

    def prompt(self, grounding: Grounding, selection: Selection | None) -> Prompt:
        """The prompt that asks for an answer from the sources; it points at the likeliest of `selection`."""
        question, context = grounding.question, grounding.context
        grounded = bool(context.sources) or question.on_no_evidence == "refuse"
        repeated = grounding.budget.repeated
        return self._prompt(question, context, selection=selection, repeated=repeated, grounded=grounded)

    def _prompt(
        self, question: Question, context: Context, *, selection: Selection | None, repeated: int, grounded: bool
    ) -> Prompt:
        pointers: list[Highlight] = []
        for source, span, text in _pointed(question, selection) if self.asking.pointed else ():
            pointer = pointer_to(source.number, source.hit.chunk.document_id, span, text)
            if (tokens := self._count(pointer.line)) <= repeated:
                repeated -= tokens
                pointers.append(pointer)
        return build_prompt(
            self._tokenizer,
            question=question.text,
            context=context,
            history=question.history,
            instructions="\n".join(
                filter(None, (question.instructions, _LENGTHS.get(question.length), answer_in(question.text)))
            ),
            grounded=grounded,
            json_schema=question.json_schema,
            highlights=highlights(
                context.sources,
                query=question.text,
                budget=repeated,
                count_tokens=self._count,
                first=[(pointer.number, pointer.span) for pointer in pointers],
            ),
            pointers=pointers,
            wording=self.asking.wording,
        )

    def _count(self, text: str) -> int:
        """The tokens of a document's text as the prompt shows it."""
        return self._tokenizer.count(quoted(text))


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
