"""The order sources are read in: first what the engine has read before, else the strongest at the edges."""

from collections.abc import Callable, Sequence

from app.prompt import shown
from generation.planning import order_for_reuse
from generation.ports import Tokenizer
from retrieval.arrangement import Order, edges_first
from retrieval.compress import header_of
from retrieval.types import Source

_WHOLE_BLOCK = 64  # tokens: caches know prompts in blocks of fewer


def reading_order(tokenizer: Tokenizer, *, head: Sequence[int], cached: Callable[[Sequence[int]], int]) -> Order:
    """An order for `retrieval.compress` that knows the engine's cache.

    Sources whose keys and values are cached right behind what comes before them go first, the others
    follow best first. Where nothing of any source is cached, the order is `edges_first`.

    Args:
        tokenizer: The serving tokenizer.
        head: Token ids of the prompt before the first source.
        cached: How many tokens of a prompt are cached from its beginning, for this tenant.
    """

    def order(sources: Sequence[Source]) -> list[int]:
        def render(source: int, place: int) -> list[int]:
            found = sources[source]
            return shown(tokenizer, header=header_of(place + 1, found.hit.chunk), body=found.body)

        if len(head) >= _WHOLE_BLOCK and not cached(head):  # then nothing behind it is cached either
            return edges_first(sources)
        planned = order_for_reuse(len(sources), head=head, render=render, cached=cached)
        known = bool(planned) and cached([*head, *render(planned[0], 0)]) > len(head)
        return planned if known else edges_first(sources)

    return order
