"""Names for prefixes of token sequences: a salted hash chain over blocks."""

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockKey:
    """Names one block's tokens after everything before them.

    `digest` is SHA-256 over the parent's digest and the tokens; the root's is over the salt. `parent`
    and `tokens` are kept so that a hit can be verified: a digest alone is a claim.
    """

    digest: bytes
    parent: bytes
    tokens: bytes


class PrefixChain:
    """The keys of a growing sequence's full blocks, in order.

    Equal keys mean equal salt and equal tokens from position 0 on. Sequences under different salts
    share nothing (cache_salt; compare CVE-2025-46570, where timing told tenants apart).
    """

    def __init__(self, *, salt: str, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self._digest = hashlib.sha256(b"footnote prefix\0" + salt.encode()).digest()
        self._keys: list[BlockKey] = []

    @property
    def keys(self) -> Sequence[BlockKey]:
        """Keys of the full blocks so far."""
        return self._keys

    def extend(self, tokens: Sequence[int]) -> None:
        """Name the full blocks of `tokens`, the whole sequence from position 0, that have no key yet."""
        size = self.block_tokens
        for start in range(len(self._keys) * size, len(tokens) - size + 1, size):
            block = array("I", tokens[start : start + size]).tobytes()
            parent = self._digest
            self._digest = hashlib.sha256(parent + block).digest()
            self._keys.append(BlockKey(self._digest, parent, block))
