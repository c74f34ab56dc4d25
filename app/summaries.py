"""Summaries of what does not fit, written by the generator: each a model call on the bill.

A quarter of the context's budget at most is set aside for them. What comes back is counted as it
is sent, so that the budget stays a promise. A sentence of a summary that its passage does not
support is left out, and where none is left the passage is dropped as it would have been.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.overflow import LeftOut, left_out, source_of, with_summaries
from app.prompt import build_summary_prompt
from app.question import Question
from app.settlement import Settler, submit
from app.support import THRESHOLD, Verifier
from app.types import DocumentShare, Operation
from app.usage.ledger import Ledger
from generation.errors import GenerationError
from generation.ports import Engine, Stream, Tokenizer
from generation.types import Completion, FinishReason, GenerationRequest, SamplingParams
from retrieval.arrangement import Order
from retrieval.sentences import sentence_spans
from retrieval.types import Context, Hit

_FIRST_CALL = 4  # within a request: 1 is the query's embedding, 2 the answer, 3 the reranking
_MOST_CALLS = 8
_SHARE = 4  # one part in so many of the budget
_LEAST = 32  # tokens of a summary: about one sentence
_MOST = 160


@dataclass(frozen=True, slots=True)
class Summarised:
    """A context, the chunk ids of its sources with a summary, and the tokens read and generated for summaries.

    `cancelled` says that the reader left meanwhile.
    """

    context: Context
    chunk_ids: tuple[str, ...] = ()
    tokens: int = 0
    cancelled: bool = False


class Calls:
    """One question's summaries under way. `close` may come from any thread, any number of times."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._lock = threading.Lock()
        self._open: list[tuple[Stream, Settler]] = []
        self.closed = False

    def add(self, stream: Stream, settler: Settler) -> None:
        """One more is under way; it ends at once if the reader left before."""
        with self._lock:
            self._open.append((stream, settler))
            closed = self.closed
        if closed:
            self._end(stream, settler)

    def close(self) -> None:
        """The reader is gone: all of them stop, and no other is begun."""
        with self._lock:
            self.closed = True
            under_way = list(self._open)
        for stream, settler in under_way:
            self._end(stream, settler)

    def _end(self, stream: Stream, settler: Settler) -> None:
        if not self._question.late:
            settler.client_left()
        stream.close()


class Summariser:
    """Fits contexts with the generator's help. One instance serves every request."""

    def __init__(self, *, engine: Engine, tokenizer: Tokenizer, tokenizer_revision: str, ledger: Ledger) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._tokenizer_revision = tokenizer_revision
        self._ledger = ledger

    def fitted(
        self,
        question: Question,
        hits: Sequence[Hit],
        *,
        budget: int,
        fit: Callable[[int], Context],
        order: Order,
        calls: Calls,
    ) -> Summarised:
        """`hits` in `budget` tokens, what does not fit summarised. Blocks until the last summary is there.

        Where everything fits, or no summary comes about, it is what `fit` makes of the whole budget.

        Args:
            question: What the summaries are about, and who pays for them.
            hits: Best first.
            budget: Most tokens of all headers and bodies together.
            fit: Compresses the hits to so many tokens.
            order: How the sources are arranged.
            calls: Closes what is under way when the reader leaves.

        Raises:
            StoreUnavailable: The ledger cannot be reached; what was under way is stopped.
        """
        whole = fit(budget)
        share = min(budget // _SHARE, whole.retrieved_tokens - whole.tokens)
        if not _overflows(whole) or share < _LEAST:
            return Summarised(whole)
        count = self._tokenizer.count
        context = fit(budget - share)
        room = self._engine.info.context_window - self._fixed_tokens(question) - _MOST
        rest = left_out(hits, context, budget=budget - share, most_tokens=room, count_tokens=count)
        allotted = _allotted(rest, share=share, count_tokens=count)
        completions = self._completions(question, allotted, calls) if allotted else []
        written = [
            (item, text)
            for (item, _), completion in zip(allotted, completions, strict=True)
            if completion is not None and (text := _text(completion, item))
        ]
        spent = sum(done.prompt_tokens + done.generated_tokens for done in completions if done is not None)
        fuller, chunk_ids = with_summaries(hits, context, written, budget=budget, count_tokens=count, order=order)
        return Summarised(fuller if chunk_ids else whole, chunk_ids, spent, cancelled=calls.closed)

    def _fixed_tokens(self, question: Question) -> int:
        empty = build_summary_prompt(self._tokenizer, question=question.text, passage="", document_id="")
        return empty.components.total

    def _completions(
        self, question: Question, allotted: Sequence[tuple[LeftOut, int]], calls: Calls
    ) -> list[Completion | None]:
        """How each summary ended; None for one the engine did not take."""
        streams: list[Stream | None] = []
        try:
            for number, (item, max_tokens) in enumerate(allotted, start=_FIRST_CALL):
                streams.append(self._submitted(question, item, max_tokens, number=number, calls=calls))
        except BaseException:
            for stream in streams:
                if stream is not None:
                    stream.close()
            raise
        return asyncio.run(_ends(streams))

    def _submitted(
        self, question: Question, item: LeftOut, max_tokens: int, *, number: int, calls: Calls
    ) -> Stream | None:
        """One summary, written down and handed to the engine; None if it was not taken."""
        if calls.closed or question.late:
            return None
        left = question.seconds_left
        document_id = item.chunk.document_id
        prompt = build_summary_prompt(
            self._tokenizer, question=question.text, passage=item.text, document_id=document_id
        )
        chunks = len(item.passage.hits_at(item.spans))
        reservation = question.reservation(
            call=number,
            operation=Operation.REWRITE,
            model=self._engine.info.model,
            tokenizer_revision=self._tokenizer_revision,
            input_tokens=prompt.components.total,
            max_output_tokens=max_tokens,
            components=prompt.components,
            documents=(DocumentShare(document_id, chunks, prompt.components.context),),
        )
        request = GenerationRequest(
            reservation.event_id,
            prompt.ids,
            SamplingParams(max_tokens=max_tokens),
            salt=question.principal.tenant_id,
            user=question.principal.user_id or question.principal.key_id,
            deadline_s=None if left is None else left / 2,  # the other half is the answer's
            sources=prompt.sources,
        )
        try:
            stream, settler = submit(self._engine, self._ledger, reservation, request)
        except GenerationError:
            return None
        calls.add(stream, settler)
        return stream


async def _ends(streams: Sequence[Stream | None]) -> list[Completion | None]:
    return await asyncio.gather(*(_end(stream) for stream in streams))


async def _end(stream: Stream | None) -> Completion | None:
    completion = None
    if stream is not None:
        async for event in stream:
            if isinstance(event, Completion):
                completion = event
    return completion


def _overflows(context: Context) -> bool:
    return any(source.compressed for source in context.sources) or any(
        dropped.reason == "budget" for dropped in context.dropped
    )


def _allotted(items: Sequence[LeftOut], *, share: int, count_tokens: Callable[[str], int]) -> list[tuple[LeftOut, int]]:
    """Which of the items to summarise, first ones first, and in how many tokens each, all in `share`.

    What is as short as a summary is not worth one.
    """
    chosen: list[LeftOut] = []
    for item in items:
        price = count_tokens(item.opening) + _LEAST
        if price <= share and len(chosen) < _MOST_CALLS and count_tokens(item.text) > _LEAST:
            chosen.append(item)
            share -= price
    each = min(_MOST, _LEAST + share // max(1, len(chosen)))
    return [(item, min(each, count_tokens(item.text))) for item in chosen]


def _text(completion: Completion, item: LeftOut) -> str:
    """What of a summary may stand for its passage, in one line: whole sentences that it supports, each once."""
    text = completion.text
    sentences = [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]
    if completion.finish_reason is FinishReason.LENGTH and len(sentences) > 1:
        sentences.pop()  # cut short
    elif completion.finish_reason not in {FinishReason.STOP, FinishReason.LENGTH}:
        return ""
    verifier = Verifier([source_of(item, "")])
    return " ".join(dict.fromkeys(sentence for sentence in sentences if _supported(verifier, sentence)))


def _supported(verifier: Verifier, sentence: str) -> bool:
    evidence = verifier.best(sentence)
    return verifier.is_claim(sentence) and evidence is not None and evidence.support >= THRESHOLD
