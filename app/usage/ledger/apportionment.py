"""Dividing the tokens that a server counted among the parts of the prompt that was sent.

A server that tokenizes by itself may count another number than was planned: the parts of the bill still sum to it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.types import Components, DocumentShare


def apportioned(parts: Sequence[int], total: int) -> list[int]:
    """`total` divided in the proportion of `parts`, by the method of largest remainders (Hamilton's).

    Equal remainders go to the earlier part. No part grows where `total` is at most their sum.

    Example:
        >>> apportioned([6, 3, 3], 7)
        [4, 2, 1]

    Raises:
        ValueError: A number is negative, or there is something to divide and no part to give it to.
    """
    whole = sum(parts)
    if total < 0 or min(parts, default=0) < 0 or (total and not whole):
        raise ValueError(f"{total} cannot be divided in the proportion of {list(parts)}.")
    if not whole:
        return list(parts)
    divided = [part * total // whole for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda place: (-(parts[place] * total % whole), place))
    for place in by_remainder[: total - sum(divided)]:
        divided[place] += 1
    return divided


def components_of(planned: Components, total: int) -> Components:
    """The components of a prompt that counts `total` tokens, which they sum to.

    What a server adds or leaves out is the template's as a rule. Where it counts fewer tokens than stand outside of the
    template, its tokens are others than those planned, and every component is scaled.
    """
    template = planned.template + total - planned.total
    if total and template >= 0:
        return replace(planned, template=template)
    names = Components.__slots__
    return Components(**dict(zip(names, apportioned([getattr(planned, name) for name in names], total), strict=True)))


def shares_of(shares: Iterable[DocumentShare], context_tokens: int) -> tuple[DocumentShare, ...]:
    """The shares of documents in a context that counts `context_tokens`, which they sum to, in the same order.

    Shares that sum to it already stay as they are. Of equal remainders the lower document id's goes first, so that the
    order in which shares are given changes none of them.
    """
    planned = tuple(shares)
    if sum(share.tokens for share in planned) == context_tokens:
        return planned
    by_id = sorted(planned, key=lambda share: share.document_id)
    divided = apportioned([share.tokens for share in by_id], context_tokens)
    tokens = {share.document_id: count for share, count in zip(by_id, divided, strict=True)}
    return tuple(replace(share, tokens=tokens[share.document_id]) for share in planned)
