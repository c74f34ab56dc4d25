"""The state of one request in the engine. Owned by the engine thread."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from generation.delivery import TokenStream
from generation.ports import Observer
from generation.prefix import BlockKey, PrefixChain
from generation.repetition import RepetitionDetector
from generation.streaming import IncrementalDecoder
from generation.types import Completion, Delta, FinishReason, GenerationRequest, Timings, TokenLogprob

if TYPE_CHECKING:
    from generation.constraints import TokenConstraint
    from generation.speculation import Acceptance, Drafter


@dataclass(slots=True, eq=False, kw_only=True)
class SequenceState:
    """The state of one sequence: its tokens, how many of them the cache holds, its text.

    `seed` is 64 bits. `computed` counts the tokens, prompt first, whose keys and values it has; `read` how far the
    prompt was found or computed at most, `recomputed` the tokens that were computed more than once, `found_later`
    the prompt's that were found only after it had lost its room.
    `chain` names its blocks. `undecoded` are the tokens after the first `decoded_tokens`, whose text is yet
    to be streamed; deltas account for `covered_tokens`. Times are `time.monotonic` seconds.
    """

    request: GenerationRequest
    seed: int
    decoder: IncrementalDecoder
    stream: TokenStream
    observer: Observer
    chain: PrefixChain
    constraint: "TokenConstraint | None" = None
    drafter: "Drafter | None" = None
    acceptance: "Acceptance | None" = None
    repetition: RepetitionDetector = field(default_factory=RepetitionDetector)
    submitted_at: float = field(default_factory=time.monotonic)
    admitted_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    generated: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    computed: int = 0
    cached: int = 0
    read: int = 0
    recomputed: int = 0
    found_later: int = 0
    drafted: int = 0
    accepted: int = 0
    preempted: bool = False
    text: list[str] = field(default_factory=list)
    undecoded: list[int] = field(default_factory=list)
    decoded_tokens: int = 0
    covered_tokens: int = 0
    abstention: float | None = None

    @property
    def user(self) -> str:
        """The user it belongs to."""
        return self.request.turn

    @property
    def priority(self) -> int:
        """Higher goes first."""
        return self.request.priority

    @property
    def remaining(self) -> int:
        """Tokens known but not computed yet: the prompt's rest, or the one token just generated."""
        return self.position - self.computed

    @property
    def position(self) -> int:
        """Tokens known, which is the absolute position of the next token to be generated."""
        return len(self.request.prompt) + len(self.generated)

    @property
    def keys(self) -> Sequence[BlockKey]:
        """Names of its known full blocks."""
        return self.chain.keys

    @property
    def longest_draft(self) -> int:
        """Most drafted tokens that its output has room for, with one drawn token after them."""
        return self.request.sampling.max_tokens - len(self.generated) - 1

    @property
    def expired(self) -> bool:
        """Whether its deadline has passed."""
        limit = self.request.deadline_s
        return limit is not None and time.monotonic() - self.submitted_at >= limit

    def preempt(self) -> None:
        """Mark it as evicted: all its tokens must be recomputed, or found in the cache."""
        self.computed = 0
        self.preempted = True

    def admit(self) -> bool:
        """Mark it as admitted, `computed` tokens found in the cache; returns whether for the first time."""
        if self.admitted_at is not None:
            return False
        self.admitted_at = time.monotonic()
        self.cached = self.read = self.computed
        return True

    def note_prefill(self, tokens: int) -> None:
        """The next `tokens` known ones are being computed, as a prompt is."""
        start, stop = self.computed, min(self.computed + tokens, len(self.request.prompt))
        fresh = max(0, stop - max(start, self.read))
        self.recomputed += tokens - fresh
        self.found_later += max(0, min(start, len(self.request.prompt)) - self.read)
        self.read = max(self.read, stop)

    def note_drafts(self, *, drafted: int, accepted: int) -> None:
        """Record the numbers of its drafted and accepted tokens."""
        self.drafted += drafted
        self.accepted += accepted
        if self.acceptance is not None and drafted:
            self.acceptance.learn(drafted, accepted)

    def name_blocks(self) -> None:
        """Name the blocks that its new tokens have filled."""
        if self.position // self.chain.block_tokens > len(self.chain.keys):
            self.chain.extend([*self.request.prompt, *self.generated])

    def next_ids(self, count: int) -> list[int]:
        """The `count` known token ids that follow the cached ones."""
        prompt, start, stop = self.request.prompt, self.computed, self.computed + count
        assert stop <= self.position, "asked for tokens that are not known yet"
        return [*prompt[start:stop], *self.generated[max(0, start - len(prompt)) : max(0, stop - len(prompt))]]

    def append(
        self, token_id: int, *, eos_ids: frozenset[int], logprob: TokenLogprob | None = None
    ) -> FinishReason | None:
        """Take the next token, and say whether the sequence ends with it.

        Its text is left to `show`, unless the sequence may end with a stop string, for which it has to be known.
        """
        self.last_token_at = time.monotonic()
        if self.first_token_at is None:
            self.first_token_at = self.last_token_at
        self.generated.append(token_id)
        if logprob is not None:
            self.logprobs.append(logprob)
        if token_id in eos_ids and not self.request.sampling.ignore_eos:
            return FinishReason.STOP
        if self.constraint is not None:
            self.constraint.advance(token_id)
        if self.drafter is not None:
            self.drafter.push(token_id)
        self.undecoded.append(token_id)
        if self.request.sampling.stop:
            self.show()
            if self.decoder.stopped:
                return FinishReason.STOP
        if len(self.generated) >= self.request.sampling.max_tokens:
            return FinishReason.LENGTH
        if self.request.sampling.stop_repetition and self.repetition.push(token_id):
            return FinishReason.REPETITION
        return None

    def show(self) -> None:
        """Stream the text that the tokens since the last call complete. Nothing where there are none."""
        tokens, self.undecoded = self.undecoded, []
        for token in tokens:
            self.decoded_tokens += 1
            self._emit(self.decoder.push(token), covered=self.decoded_tokens)

    def complete(self, reason: FinishReason, *, error: str | None = None) -> Completion:
        """Emit the text held back and return the completion; the finisher fills in `delivered_tokens`.

        Tokens without text (an end-of-sequence token, what follows a stop string) are covered by a
        last delta, whose text may be empty, so that deltas account for every token. After an error
        nothing is decoded any more: the decoding may have failed.
        """
        text = ""
        if reason is not FinishReason.ERROR:
            self.show()
            text = self.decoder.flush()
        self._emit(text, covered=len(self.generated), last=True)
        now, start, first = time.monotonic(), self.submitted_at, self.first_token_at
        return Completion(
            id=self.request.id,
            text="".join(self.text),
            token_ids=tuple(self.generated),
            finish_reason=reason,
            prompt_tokens=len(self.request.prompt),
            cached_tokens=self.cached,
            delivered_tokens=0,
            timings=Timings(
                queue_ms=1000 * ((self.admitted_at or now) - start),
                first_token_ms=None if first is None else 1000 * (first - start),
                total_ms=1000 * (now - start),
            ),
            error=error,
            drafted_tokens=self.drafted,
            accepted_tokens=self.accepted,
            logprobs=tuple(self.logprobs),
            abstention=self.abstention,
        )

    def _emit(self, text: str, *, covered: int, last: bool = False) -> None:
        new_tokens = covered - self.covered_tokens
        if text or (last and new_tokens):
            self.text.append(text)
            logprobs = tuple(self.logprobs[self.covered_tokens : covered])
            self.covered_tokens = covered
            self.stream.put(Delta(text=text, tokens=new_tokens, logprobs=logprobs))
