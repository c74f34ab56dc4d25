"""The embedder's tokenizer where the generator's would count, in a process without a generator."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class EmbedderTokenizer:
    """Implements `generation.ports.Tokenizer`; there is no chat, so its frame is empty."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        """`tokenizer` neither truncates nor pads."""
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, no special token added."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def count(self, text: str) -> int:
        """`len(encode(text))`."""
        return len(self.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens left out; an embedder's tokenizer may have lost capitals and spacing."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def piece(self, token_id: int) -> bytes:
        """The text of one token."""
        return self.decode([token_id]).encode()

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """`len(roles) + 1` empty pieces."""
        return ((),) * (len(roles) + 1)
