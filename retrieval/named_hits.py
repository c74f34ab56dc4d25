"""Ranks passages of documents that a question names among the passages of all others.

A passage's score is its fused score and the sureness with which its document is named. Scores of a search inside few
documents say which passage is the best of them, and not whether it is about the question: so they are reduced by how
much less similar to the question a passage is than the best of all (docs/adr/0092).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from retrieval.fusion import LEAST_COSINE
from retrieval.name_index import NamedDocument
from retrieval.types import Hit

NAME_WEIGHT = 0.35
"""Share of the sureness in the sum; the optimum is flat from .35 on (docs/EXPERIMENTS.md, 2026-11-28)."""


def ranked_by_name(
    hits: Sequence[Hit], inside: Sequence[Hit], named: Sequence[NamedDocument], *, top_k: int
) -> tuple[Hit, ...]:
    """At most `top_k` of both, best first, ties in the order of `hits` and then of `inside`.

    Args:
        hits: Of the search in the whole scope, best first; those of named documents are ranked by `inside` alone, since
            the words of a name say nothing of which of its passages answers.
        inside: Of the search in the named documents, best first.
        named: Those documents.
        top_k: At least 1.

    Returns:
        Each passage once; its `scores.fused` is the sum, in [0, 1].
    """
    shares = {one.id: one.share for one in named}
    most_similar = max((_similarity(hit) for hit in hits), default=0.0)

    def similar(hit: Hit) -> float:
        return min(1.0, _similarity(hit) / most_similar) if most_similar > 0 else 1.0

    ranked = [
        *_weighed([hit for hit in hits if hit.chunk.document_id not in shares], hits, lambda _hit: 1.0, shares),
        *_weighed(inside, inside, similar, shares),
    ]
    return tuple(sorted(ranked, key=lambda hit: -hit.scores.fused)[:top_k])  # sorted is stable


def _weighed(
    hits: Sequence[Hit], searched: Sequence[Hit], similar: Callable[[Hit], float], shares: Mapping[str, float]
) -> Iterator[Hit]:
    """Hits with the sum of their score, over the best of their search, and of the sureness of their document."""
    best = max((hit.scores.fused for hit in searched), default=0.0)
    for hit in hits:
        score = similar(hit) * hit.scores.fused / best if best > 0 else 0.0
        total = (1 - NAME_WEIGHT) * score + NAME_WEIGHT * shares.get(hit.chunk.document_id, 0.0)
        yield replace(hit, scores=replace(hit.scores, fused=total))


def _similarity(hit: Hit) -> float:
    """Cosine above the least that passages have; 0 for a passage that was found by words alone."""
    return 0.0 if hit.scores.dense is None else max(0.0, hit.scores.dense - LEAST_COSINE)
