"""Summarises passages that do not fit into the context, each by a call of the language model that is billed.

At most a quarter of the context's budget is reserved for summaries, and their tokens count toward the budget. A
sentence of a summary that its passage does not support is left out; a passage with no sentence left is dropped.
"""

from collections.abc import Callable, Sequence

from app.answering.generating.overflow import LeftOut, left_out, source_of, with_summaries
from app.answering.generating.prompt_layout import build_summary_prompt
from app.answering.metering.meter import Meter
from app.answering.metering.settler import completions
from app.answering.metering.token_usage import Purpose
from app.answering.prompt import quoted
from app.answering.question import Question
from app.answering.states.sources import Fitted
from app.answering.verification.verifier import Verifier
from app.types import DocumentShare
from generation.ports import Engine, Stream, Tokenizer
from generation.types import Completion, FinishReason
from retrieval.compress import Order
from retrieval.sentences import sentence_spans
from retrieval.types import Context, Hit

_MOST_CALLS = 8  # see `app.answering.metering.call_kinds`
_SHARE = 4  # summaries get at most 1/4 of the budget
_TIME_SHARE = 2  # summaries get at most 1/2 of the time left; the rest is the answer's
_LEAST = 32  # tokens of a summary: about one sentence
_MOST = 160
_COVERAGE = 0.6  # of a sentence's words, by rarity, that its passage must hold


class Summariser:
    """Fits hits into a token budget and summarises those that do not fit: implements `Overflow`.

    One instance serves every request.
    """

    def __init__(self, *, engine: Engine, tokenizer: Tokenizer) -> None:
        self._engine = engine
        self._tokenizer = tokenizer

    def fitted(
        self,
        question: Question,
        hits: Sequence[Hit],
        *,
        budget: int,
        fit: Callable[[int], Context],
        order: Order,
        meter: Meter,
    ) -> Fitted:
        """As `Overflow.fitted`, with summaries about the question; blocks until the last of them has ended.

        Where everything fits, or no summary is usable, the context is the result of `fit` for the whole budget. An
        error stops the summaries that run.
        """
        whole = fit(budget)
        share = min(budget // _SHARE, whole.retrieved_tokens - whole.tokens)
        if not _overflows(whole) or share < _LEAST:
            return Fitted(whole)
        count = self._count
        context = fit(budget - share)
        room = self._engine.info.context_window - self._fixed_tokens(question) - _MOST
        rest = left_out(hits, context, budget=budget - share, most_tokens=room, count_tokens=count)
        allotted = _allotted(rest, share=share, count_tokens=count)
        ended = self._completions(question, allotted, meter) if allotted else []
        written = [
            (item, text)
            for (item, _), completion in zip(allotted, ended, strict=True)
            if completion is not None and (text := _text(completion, item))
        ]
        fuller, chunk_ids = with_summaries(hits, context, written, budget=budget, count_tokens=count, order=order)
        return Fitted(fuller if chunk_ids else whole, chunk_ids)

    def _count(self, text: str) -> int:
        """The tokens of a document's text as a prompt shows it."""
        return self._tokenizer.count(quoted(text))

    def _fixed_tokens(self, question: Question) -> int:
        empty = build_summary_prompt(self._tokenizer, question=question.text, passage="", document_id="")
        return empty.components.total

    def _completions(
        self, question: Question, allotted: Sequence[tuple[LeftOut, int]], meter: Meter
    ) -> list[Completion | None]:
        """The completion of each summary; None for a call that was not made."""
        streams: list[Stream | None] = []
        try:
            for item, max_tokens in allotted:
                streams.append(self._begun(question, item, max_tokens, meter))
        except BaseException:
            for stream in streams:
                if stream is not None:
                    stream.close()
            raise
        return completions(streams)

    def _begun(self, question: Question, item: LeftOut, max_tokens: int, meter: Meter) -> Stream | None:
        """The stream of one summary; None if the call was not made."""
        document_id = item.chunk.document_id
        prompt = build_summary_prompt(
            self._tokenizer, question=question.text, passage=item.text, document_id=document_id
        )
        chunks = len(item.passage.hits_at(item.spans))
        return meter.helping(
            Purpose.SUMMARISE,
            prompt,
            max_tokens=max_tokens,
            time_share=_TIME_SHARE,
            documents=(DocumentShare(document_id, chunks, prompt.components.context),),
        )


def _overflows(context: Context) -> bool:
    return any(source.compressed for source in context.sources) or any(
        dropped.reason == "budget" for dropped in context.dropped
    )


def _allotted(items: Sequence[LeftOut], *, share: int, count_tokens: Callable[[str], int]) -> list[tuple[LeftOut, int]]:
    """The items to summarise, in the given order, and the most tokens of each summary, all within `share`.

    Items as short as a summary are left out.
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
    """The usable text of a summary, in one line: complete sentences that its passage supports, each once."""
    text = completion.text
    sentences = [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]
    if completion.finish_reason is FinishReason.LENGTH and len(sentences) > 1:
        sentences.pop()  # cut short
    elif completion.finish_reason not in {FinishReason.STOP, FinishReason.LENGTH}:
        return ""
    verifier = Verifier([source_of(item, "")])
    kept = (one for one in sentences if verifier.is_claim(one) and verifier.coverage(one) >= _COVERAGE)
    return " ".join(dict.fromkeys(kept))
