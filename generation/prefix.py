"""Keys for cached prompt prefixes (a salted hash chain over blocks), and the source order that reuses them best."""

import hashlib
from array import array
from collections.abc import Callable, Sequence
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
    share nothing (cache_salt; compare CVE-2025-46570, where timing revealed other tenants' prompts).
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


def order_for_reuse(
    count: int,
    *,
    head: Sequence[int],
    render: Callable[[int, int], Sequence[int]],
    cached: Callable[[Sequence[int]], int],
    popularity: Callable[[int], float] = lambda _: 0.0,
) -> list[int]:
    """Order sources so that as long a prefix of the prompt as possible is cached.

    Keys and values can be reused only as far as prompts agree from their first token on, and of the
    shared chunks only few are at the same place otherwise. A walk down the tree of
    cached prefixes takes at each place the source that is cached longest there; once none is, the
    popular ones go first, so that later requests meet them in the same order (evidence ordering, as
    in CacheWeaver, arXiv:2606.19667, and RAGBoost, arXiv:2511.03475).

    Args:
        count: Sources, 0 to `count` - 1, best first.
        head: Token ids before the first source.
        render: Token ids of a source at a place (its number may be part of them).
        cached: How many tokens of a prompt are cached from its beginning.
        popularity: How often a source is wanted.

    Returns:
        The sources in order; never one with less to reuse than in the order given.
    """
    given = list(range(count))
    prompt, left = list(head), set(given)
    order: list[int] = []
    while left:
        held = {source: cached([*prompt, *render(source, len(order))]) for source in left}
        best = min(left, key=lambda source: (-held[source], -popularity(source), source))
        if held[best] <= len(prompt):  # nothing of any of them
            order += sorted(left, key=lambda source: (-popularity(source), source))
            break
        prompt += render(best, len(order))
        order.append(best)
        left.remove(best)

    def reused(sources: Sequence[int]) -> int:
        return cached([*head, *(token for place, source in enumerate(sources) for token in render(source, place))])

    return order if reused(order) >= reused(given) else given
