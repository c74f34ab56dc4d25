"""One request on its way through the engine. Owned by the engine thread."""

import time
from dataclasses import dataclass, field

from generation.delivery import TokenStream
from generation.ports import Observer
from generation.streaming import IncrementalDecoder
from generation.types import Completion, Delta, FinishReason, GenerationRequest, Timings


@dataclass(slots=True, eq=False, kw_only=True)
class SequenceState:
    """What is known of one sequence: its tokens, how many of them the cache holds, its text.

    `seed` is 64 bits. `computed` counts the tokens, prompt first, whose keys and values are cached.
    Times are `time.monotonic` seconds.
    """

    request: GenerationRequest
    seed: int
    decoder: IncrementalDecoder
    stream: TokenStream
    observer: Observer
    submitted_at: float = field(default_factory=time.monotonic)
    admitted_at: float | None = None
    first_token_at: float | None = None
    generated: list[int] = field(default_factory=list)
    computed: int = 0
    text: list[str] = field(default_factory=list)
    covered_tokens: int = 0

    @property
    def remaining(self) -> int:
        """Tokens known but not in the cache yet: the prompt's rest, or the one token just generated."""
        return self.position - self.computed

    @property
    def reserved(self) -> int:
        """Most tokens whose keys and values it can come to hold."""
        return len(self.request.prompt) + self.request.sampling.max_tokens

    @property
    def position(self) -> int:
        """Absolute position of the next token to be generated."""
        return len(self.request.prompt) + len(self.generated)

    def next_ids(self, count: int) -> list[int]:
        """The `count` known token ids that follow the cached ones."""
        prompt, start, stop = self.request.prompt, self.computed, self.computed + count
        assert stop <= self.position, "asked for tokens that are not known yet"
        return [*prompt[start:stop], *self.generated[max(0, start - len(prompt)) : max(0, stop - len(prompt))]]

    def append(self, token_id: int, *, eos_ids: frozenset[int]) -> FinishReason | None:
        """Take the next token, stream the text it completes, and say whether the sequence ends with it."""
        if self.first_token_at is None:
            self.first_token_at = time.monotonic()
        self.generated.append(token_id)
        if token_id in eos_ids and not self.request.sampling.ignore_eos:
            return FinishReason.STOP
        self._emit(self.decoder.push(token_id))
        if self.decoder.stopped:
            return FinishReason.STOP
        if len(self.generated) >= self.request.sampling.max_tokens:
            return FinishReason.LENGTH
        return None

    def complete(self, reason: FinishReason, *, error: str | None = None) -> Completion:
        """Stream what was held back and close the books; `delivered_tokens` is filled in by the finisher.

        Tokens without text (an end-of-sequence token, what follows a stop string) are covered by a
        last delta, whose text may be empty, so that deltas account for every token. After an error
        nothing is decoded any more: decoding may be what failed.
        """
        self._emit("" if reason is FinishReason.ERROR else self.decoder.flush(), last=True)
        now, start, first = time.monotonic(), self.submitted_at, self.first_token_at
        return Completion(
            id=self.request.id,
            text="".join(self.text),
            token_ids=tuple(self.generated),
            finish_reason=reason,
            prompt_tokens=len(self.request.prompt),
            cached_tokens=0,
            delivered_tokens=0,
            timings=Timings(
                queue_ms=1000 * ((self.admitted_at or now) - start),
                first_token_ms=None if first is None else 1000 * (first - start),
                total_ms=1000 * (now - start),
            ),
            error=error,
        )

    def _emit(self, text: str, *, last: bool = False) -> None:
        new_tokens = len(self.generated) - self.covered_tokens
        if text or (last and new_tokens):
            self.text.append(text)
            self.covered_tokens = len(self.generated)
            self.stream.put(Delta(text=text, tokens=new_tokens))
