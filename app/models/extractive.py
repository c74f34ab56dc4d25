"""The Engine and the Tokenizer used when no language model is configured; the engine refuses requests."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.settings import EXTRACTIVE
from generation.errors import EngineStopped
from generation.ports import Observer, Stream
from generation.types import EngineStats, GenerationRequest, ModelInfo

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_NOTHING = EngineStats(waiting=0, running=0, capacity=0, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0)


class NoEngine:
    """An `Engine` without a model. Answers are quotations, so `submit` is never needed."""

    def __init__(self, *, revision: str, context_window: int) -> None:
        """`revision` identifies the selection of quotes; at most `context_window` tokens of the sources are read."""
        self._info = ModelInfo(
            model=EXTRACTIVE, revision=revision, context_window=context_window, device="none", dtype="none"
        )

    @property
    def info(self) -> ModelInfo:
        """Describes the extractive mode as a model."""
        return self._info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:  # noqa: ARG002 - the port's
        """Refuses the request.

        Raises:
            EngineStopped: Always.
        """
        raise EngineStopped("This server has no language model.")

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:  # noqa: ARG002 - the port's
        """None."""
        return 0

    def stats(self) -> EngineStats:
        """Returns zero for all counters."""
        return _NOTHING

    def alive(self) -> bool:
        """Returns True: there is no thread that could die."""
        return True

    def close(self) -> None:
        """Does nothing."""


class EmbedderTokenizer:
    """Implements `generation.ports.Tokenizer`; there is no chat, so its frame is empty."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        """`tokenizer` neither truncates nor pads."""
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Encodes plain text without special tokens."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def count(self, text: str) -> int:
        """`len(encode(text))`."""
        return len(self.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Decodes ids without special tokens; an embedder's tokenizer may lose capitals and spacing."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def piece(self, token_id: int) -> bytes:
        """The text of one token."""
        return self.decode([token_id]).encode()

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """`len(roles) + 1` empty pieces."""
        return ((),) * (len(roles) + 1)
