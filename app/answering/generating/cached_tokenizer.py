"""Caches the tokens of texts, so that the fixed parts of prompts and repeated passages are tokenised once."""

from collections.abc import Sequence

from generation.ports import Tokenizer
from retrieval.memo import remembered


class CachedTokenizer:
    """Implements `Tokenizer` over another one, with the cache in use (`retrieval.memo`).

    >>> tokenizer = CachedTokenizer(ChatTokenizer.load(folder))
    >>> with memo.of(tenant_id):
    ...     tokenizer.count(passage)
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Wrap `tokenizer`, which must be deterministic."""
        self._tokenizer = tokenizer

        def ids(text: str) -> tuple[int, ...]:
            return tuple(tokenizer.encode(text))

        self._ids = remembered(ids)

    def encode(self, text: str) -> list[int]:
        """The ids of the wrapped tokenizer, as a new list."""
        return list(self._ids(text))

    def count(self, text: str) -> int:
        """The number of tokens, as the wrapped tokenizer counts."""
        return len(self._ids(text))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids, by the wrapped tokenizer."""
        return self._tokenizer.decode(ids)

    def piece(self, token_id: int) -> bytes:
        """The bytes of a token, by the wrapped tokenizer."""
        return self._tokenizer.piece(token_id)

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The chat template's parts, by the wrapped tokenizer."""
        return self._tokenizer.chat_frame(roles)
