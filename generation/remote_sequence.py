"""The state of one request at a generation server. Owned by the remote engine's loop."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from generation.delivery import TokenStream
from generation.ports import Observer, Tokenizer
from generation.remote_protocol import StreamChunk
from generation.repetition import RepetitionDetector
from generation.streaming import StopStrings
from generation.types import Completion, Delta, FinishReason, GenerationRequest, Timings, TokenLogprob


class CountedStream(TokenStream):
    """A stream whose taken tokens never exceed what was generated, once that is known.

    Where a server sends neither ids nor running counts, deltas have estimates until its last chunk.
    """

    def __init__(self, *, on_close: Callable[[], None], on_drained: Callable[[], None]) -> None:
        super().__init__(on_close=on_close, on_drained=on_drained)
        self._generated_tokens: int | None = None

    @property
    def taken_tokens(self) -> int:
        """Tokens covered by the deltas the reader has taken."""
        taken = super().taken_tokens
        return taken if self._generated_tokens is None else min(taken, self._generated_tokens)

    def settle(self, generated_tokens: int) -> None:
        """Set the final number of generated tokens, which replaces the estimates."""
        self._generated_tokens = generated_tokens


@dataclass(slots=True, eq=False, kw_only=True)
class RemoteSequence:
    """The state of one sequence: its text and the server's token counts.

    `counted` is, in order of preference: the server's running count, the ids it sent, or each chunk's text
    counted by our tokenizer; `tallied` of it are in the engine's statistics. `repeating` says that the text goes round
    in a circle; where a server sends no ids, each of its pieces counts as a token. Times are `time.monotonic` seconds.
    `traceparent` is the header that makes the server's spans part of the request's trace.
    """

    request: GenerationRequest
    body: dict[str, Any]
    traceparent: str | None
    tokenizer: Tokenizer
    stop: StopStrings
    stream: CountedStream
    observer: Observer
    task: asyncio.Task[FinishReason] | None = None
    timer: asyncio.TimerHandle | None = None
    cut: FinishReason | None = None
    preempted: bool = False
    submitted_at: float = field(default_factory=time.monotonic)
    admitted_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    received: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    token_ids: list[int] | None = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    counted: int = 0
    tallied: int = 0
    covered_tokens: int = 0
    covered_logprobs: int = 0
    final_count: int | None = None
    repetition: RepetitionDetector = field(default_factory=RepetitionDetector)
    repeating: bool = False
    prompt_tokens: int | None = None
    cached_tokens: int = 0

    @property
    def user(self) -> str:
        """The user it belongs to."""
        return self.request.turn

    @property
    def priority(self) -> int:
        """Higher goes first."""
        return self.request.priority

    @property
    def runaway(self) -> bool:
        """Whether the server sent more pieces than tokens were asked for; one may be text held back till the end."""
        return len(self.received) > self.request.sampling.max_tokens + 1

    def take(self, chunk: StreamChunk) -> int:
        """Count a chunk and stream the text that is certain now. Returns the tokens it brought."""
        before = self.counted
        if chunk.text or chunk.token_ids:
            self.last_token_at = time.monotonic()
            self.first_token_at = self.first_token_at or self.last_token_at
            self.final_count = None  # what was reported before does not cover this
            self._count(chunk)
        if chunk.usage is not None:
            self.final_count = chunk.usage.completion_tokens
            self.counted = max(self.counted, self.final_count)
            self.prompt_tokens = chunk.usage.prompt_tokens or self.prompt_tokens
            self.cached_tokens = chunk.usage.cached_tokens or self.cached_tokens
        self.logprobs.extend(chunk.logprobs)
        if self.request.sampling.stop_repetition:
            pieces: Sequence[object] = chunk.token_ids or ([chunk.text] if chunk.text else [])
            for piece in pieces:
                self.repeating = self.repetition.push(piece) or self.repeating
        if chunk.text:
            self.received.append(chunk.text)
            if not self.stop.found:
                self._emit(self.stop.push(chunk.text))
        return self.counted - before

    def complete(self, reason: FinishReason, *, error: str | None = None) -> Completion:
        """Emit the text held back and return the completion; the finisher fills in `delivered_tokens`.

        The count is the server's where it sent one, else the number of ids, else our tokenizer's of
        the received text. Ids that the server did not send are our tokenizer's of the same text.
        `prompt_tokens` is what was sent unless the server counted otherwise: the server's is what was
        computed, so it goes on the bill. One that ended before its turn came is billed nothing.
        """
        told = self.token_ids if self.token_ids or not self.received else None
        token_ids = tuple(self.tokenizer.encode("".join(self.received)) if told is None else told)
        generated = len(token_ids) if self.final_count is None else self.final_count
        self.counted = generated
        self._emit("" if self.stop.found else self.stop.flush(), last=True)
        self.stream.settle(generated)
        now, start, first = time.monotonic(), self.submitted_at, self.first_token_at
        sent = 0 if self.admitted_at is None else len(self.request.prompt)
        prompt_tokens = sent if self.prompt_tokens is None else self.prompt_tokens
        return Completion(
            id=self.request.id,
            text="".join(self.text),
            token_ids=token_ids,
            finish_reason=reason,
            prompt_tokens=prompt_tokens,
            cached_tokens=min(self.cached_tokens, prompt_tokens),
            delivered_tokens=0,
            timings=Timings(
                queue_ms=1000 * ((self.admitted_at or now) - start),
                first_token_ms=None if first is None else 1000 * (first - start),
                total_ms=1000 * (now - start),
            ),
            error=error,
            logprobs=tuple(self.logprobs),
            reported_tokens=None if generated == len(token_ids) else generated,
        )

    def forgo_ids(self) -> None:
        """Keep the count alone: the text cannot be encoded."""
        self.final_count = self.counted
        self.token_ids = []
        self.received.clear()

    def _count(self, chunk: StreamChunk) -> None:
        if chunk.token_ids is None:
            self.token_ids = None  # from here on they would have gaps
        elif self.token_ids is not None:
            self.token_ids.extend(chunk.token_ids)
        if chunk.usage is not None:
            return  # the server counts for itself
        if chunk.token_ids is not None:
            self.counted += len(chunk.token_ids)
        else:
            self.counted += max(1, self.tokenizer.count(chunk.text))

    def _emit(self, text: str, *, last: bool = False) -> None:
        new_tokens = max(0, self.counted - self.covered_tokens)
        new_logprobs = tuple(self.logprobs[self.covered_logprobs :])
        if text or (last and (new_tokens or new_logprobs)):
            self.text.append(text)
            self.covered_tokens = max(self.counted, self.covered_tokens)
            self.covered_logprobs = len(self.logprobs)
            self.stream.put(Delta(text=text, tokens=new_tokens, logprobs=new_logprobs))
