"""The ports of generation: engine, stream, tokenizer, and the observer of a sequence's cost."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from generation.types import Completion, Delta, EngineStats, GenerationRequest, ModelInfo


class Stream(Protocol):
    """One sequence as it is generated. Read by one task; `close` may be called from any thread, repeatedly."""

    def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        """Deltas, then exactly one `Completion`, last, always: also after an error or a cancellation."""
        ...

    def close(self) -> None:
        """Stop the generation within a step and free its slot, since nothing more is read. Idempotent."""
        ...


class Observer(Protocol):
    """Receives the token counts of a sequence, on an engine thread other than the model's.

    An exception is logged and does not reach the stream.
    """

    def checkpoint(self, request_id: str, generated_tokens: int) -> None:
        """Called at least every 32 generated tokens while the sequence runs."""
        ...

    def finish(self, completion: Completion) -> None:
        """Called exactly once for every accepted sequence, before the stream yields its `Completion`.

        It comes when the engine is done with the sequence *and* the reader has taken every delta or
        has closed, at the latest a few seconds after the engine is done (slow readers).
        """
        ...


class Engine(Protocol):
    """Generates several sequences at once on one device."""

    @property
    def info(self) -> ModelInfo:
        """The loaded model."""
        ...

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        """Accept a sequence; returns at once, from any thread.

        Raises:
            ContextLengthExceeded: prompt plus `max_tokens` exceed the context window.
            EngineFull: the waiting line is at its bound. Counted at the check.
            EngineStopped: the engine is closed or dead.
        """
        ...

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        """Estimated number of the prompt's tokens that are cached now. Safe from any thread."""
        ...

    def stats(self) -> EngineStats:
        """Running and waiting sequences now, and totals since the start."""
        ...

    def alive(self) -> bool:
        """Whether the engine thread runs."""
        ...

    def close(self) -> None:
        """Stop: running sequences end as CANCELLED, observers are called; then the device is released."""
        ...


class Tokenizer(Protocol):
    """The serving tokenizer. Safe to call from several threads."""

    def encode(self, text: str) -> list[int]:
        """Ids of plain text: nothing is added, and a special token spelled out in `text` is *not* recognised."""
        ...

    def count(self, text: str) -> int:
        """`len(encode(text))`."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens left out."""
        ...

    def piece(self, token_id: int) -> bytes:
        """What one token adds to decoded text, perhaps part of a character; empty for special tokens."""
        ...

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The chat template's own ids around messages with these roles, ready for an assistant's turn.

        Returns `len(roles) + 1` pieces: a prompt is `frame[0] + content[0] + frame[1] + … + frame[-1]`,
        each content from `encode`. Roles are "system", "user", "assistant"; a template without a system
        role gets it joined to the first user message's frame.
        """
        ...
