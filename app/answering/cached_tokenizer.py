"""The serving tokenizer with a memory: a prompt's fixed parts and the passages in it are read into tokens once."""

from collections.abc import Sequence

from generation.ports import Tokenizer
from retrieval.memo import remembered


class CachedTokenizer:
    """Implements `Tokenizer` by asking another one what the memory in use does not know (`retrieval.memo`)."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Over `tokenizer`, whose texts always have the same ids."""
        self._tokenizer = tokenizer

        def ids(text: str) -> tuple[int, ...]:
            return tuple(tokenizer.encode(text))

        self._ids = remembered(ids)

    def encode(self, text: str) -> list[int]:
        """As the other one's; the caller's own list."""
        return list(self._ids(text))

    def count(self, text: str) -> int:
        """As the other one's."""
        return len(self._ids(text))

    def decode(self, ids: Sequence[int]) -> str:
        """As the other one's."""
        return self._tokenizer.decode(ids)

    def piece(self, token_id: int) -> bytes:
        """As the other one's."""
        return self._tokenizer.piece(token_id)

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """As the other one's."""
        return self._tokenizer.chat_frame(roles)
