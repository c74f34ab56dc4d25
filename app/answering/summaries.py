"""Summaries of what does not fit, written by the generator: each a model call on the bill.

A quarter of the context's budget at most is set aside for them. What comes back is counted as it
is sent, so that the budget stays a promise. A sentence of a summary that its passage does not
support is left out, and where none is left the passage is dropped as it would have been.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.answering.calls import Caller, CallNumber, Calls, completions
from app.answering.overflow import LeftOut, left_out, source_of, with_summaries
from app.answering.prompt import build_summary_prompt
from app.answering.question import Question
from app.answering.verification.verifier import Verifier
from app.types import DocumentShare
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine, Stream, Tokenizer
from generation.types import Completion, FinishReason
from retrieval.compress import Order
from retrieval.sentences import sentence_spans
from retrieval.types import Context, Hit

_MOST_CALLS = 8  # see `CallNumber`
_SHARE = 4  # one part in so many of the budget
_TIME_SHARE = 2  # one part in so many of the time left; the other half is the answer's
_LEAST = 32  # tokens of a summary: about one sentence
_MOST = 160
_COVERAGE = 0.6  # of a sentence's words, by rarity, that its passage must hold


@dataclass(frozen=True, slots=True)
class Summarised:
    """A context, the chunk ids of its sources with a summary, and the tokens read and generated for summaries.

    `cancelled` says that the reader left meanwhile.
    """

    context: Context
    chunk_ids: tuple[str, ...] = ()
    tokens: int = 0
    cancelled: bool = False


class Summariser:
    """Fits contexts with the generator's help. One instance serves every request."""

    def __init__(self, *, engine: Engine, tokenizer: Tokenizer, tokenizer_revision: str, ledger: Ledger) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._caller = Caller(engine=engine, tokenizer_revision=tokenizer_revision, ledger=ledger)

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
        ended = self._completions(question, allotted, calls) if allotted else []
        written = [
            (item, text)
            for (item, _), completion in zip(allotted, ended, strict=True)
            if completion is not None and (text := _text(completion, item))
        ]
        spent = sum(done.prompt_tokens + done.generated_tokens for done in ended if done is not None)
        fuller, chunk_ids = with_summaries(hits, context, written, budget=budget, count_tokens=count, order=order)
        return Summarised(fuller if chunk_ids else whole, chunk_ids, spent, cancelled=calls.closed)

    def _fixed_tokens(self, question: Question) -> int:
        empty = build_summary_prompt(self._tokenizer, question=question.text, passage="", document_id="")
        return empty.components.total

    def _completions(
        self, question: Question, allotted: Sequence[tuple[LeftOut, int]], calls: Calls
    ) -> list[Completion | None]:
        """How each summary ended; None for one that was not begun."""
        streams: list[Stream | None] = []
        try:
            for number, (item, max_tokens) in enumerate(allotted, start=CallNumber.FIRST_SUMMARY):
                streams.append(self._begun(question, item, max_tokens, number=number, calls=calls))
        except BaseException:
            for stream in streams:
                if stream is not None:
                    stream.close()
            raise
        return completions(streams)

    def _begun(self, question: Question, item: LeftOut, max_tokens: int, *, number: int, calls: Calls) -> Stream | None:
        """One summary under way; None if it was not begun."""
        document_id = item.chunk.document_id
        prompt = build_summary_prompt(
            self._tokenizer, question=question.text, passage=item.text, document_id=document_id
        )
        chunks = len(item.passage.hits_at(item.spans))
        return self._caller.begin(
            question,
            prompt,
            calls=calls,
            number=number,
            max_tokens=max_tokens,
            time_share=_TIME_SHARE,
            documents=(DocumentShare(document_id, chunks, prompt.components.context),),
        )


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
    kept = (one for one in sentences if verifier.is_claim(one) and verifier.coverage(one) >= _COVERAGE)
    return " ".join(dict.fromkeys(kept))
