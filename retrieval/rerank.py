"""The order of the hits after a second, closer look at the first of them."""

from collections.abc import Sequence
from dataclasses import replace

from retrieval.types import Chunk, Hit


def reranked(hits: Sequence[Hit], scores: Sequence[float]) -> tuple[Hit, ...]:
    """The first `len(scores)` hits by their rerank score, best first; the others follow in their order.

    Equal scores keep the order of `hits`, so a reranker without an opinion changes nothing.

    Args:
        hits: Best first.
        scores: Of the first hits, in their order, by a `Reranker`; at most as many as there are hits.

    Returns:
        Every hit once, those that were scored with `scores.rerank` filled.
    """
    assert len(scores) <= len(hits), "every score belongs to a hit"
    scored = [replace(hit, scores=replace(hit.scores, rerank=score)) for hit, score in zip(hits, scores, strict=False)]
    by_score = sorted(range(len(scored)), key=lambda rank: -scores[rank])  # sorted is stable
    return (*(scored[rank] for rank in by_score), *hits[len(scored) :])


def passage(chunk: Chunk) -> str:
    """What a reranker reads of a chunk: its headings, without which many passages do not say what they are about."""
    return "\n".join([" > ".join(chunk.heading_path), chunk.text]) if chunk.heading_path else chunk.text
