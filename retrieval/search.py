"""Searches by vectors, by words, or by both, and reorders the first hits by rerank scores."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from retrieval.fusion import convex_combination
from retrieval.mentions import CANDIDATES, lift_mentioned
from retrieval.ports import ChunkStore, DenseIndex, LexicalIndex, Timer, Vectors
from retrieval.types import Chunk, Hit, Scope, Scores, SearchMode


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
    """The text of a chunk that a reranker reads: its headings, its table header and its text."""
    return "\n".join(filter(None, [" > ".join(chunk.heading_path), chunk.table_header, chunk.text]))


class Search:
    """Finds chunks by meaning, by words, or by both. Safe to call from several threads."""

    def __init__(
        self,
        dense: DenseIndex,
        lexical: LexicalIndex,
        store: ChunkStore,
        *,
        timed: Timer = nullcontext,
    ) -> None:
        """`timed` times the parts of a search."""
        self._timed = timed
        self._dense = dense
        self._lexical = lexical
        self._store = store

    def search(
        self,
        query: str,
        *,
        scope: Scope,
        top_k: int,
        vector: Callable[[], Vectors],
        words: str | None = None,
        mode: SearchMode = SearchMode.HYBRID,
        candidates: int = 100,
    ) -> tuple[Hit, ...]:
        """At most `top_k` hits in `scope`, best first, ties by key.

        Each search brings `max(candidates, top_k)` chunks. The store is asked again for the final
        ones: a hit deleted meanwhile is left out and the next takes its place. `scores.fused` is the
        convex combination of both searches' scores, in [0, 1], raised for passages that the best ones
        mention; alone, a search is fused with nothing. A blank query and an empty scope have no hits.

        Args:
            query: What is searched for.
            scope: What may be found.
            top_k: Most hits, at least 1.
            vector: The query's (dim,) unit vector; called at most once, and only where vectors are searched.
            words: The words of the query that passages are searched for, where these are not all.
            mode: By vectors, by words, or by both.
            candidates: Chunks that each search brings at least, at least 1.

        Raises:
            ValueError: `top_k` or `candidates` is below 1.
        """
        if top_k < 1 or candidates < 1:
            raise ValueError(f"top_k and candidates must be at least 1, got {top_k} and {candidates}")
        if not query.strip():
            return ()

        k = max(candidates, top_k)
        dense: list[tuple[int, float]] = []
        lexical: list[tuple[int, float]] = []
        if mode is not SearchMode.LEXICAL:
            if not self._store.holds(scope):
                return ()
            asked = vector()
            with self._timed("dense"):
                dense = self._dense.search_vector(asked, scope=scope, k=k)
        if mode is not SearchMode.DENSE:
            with self._timed("lexical"):
                lexical = self._lexical.search_text(query if words is None else words, scope=scope, k=k)
        with self._timed("fusion"):
            return self._hits(dense, lexical, scope=scope, top_k=top_k)

    def _hits(
        self,
        dense: list[tuple[int, float]],
        lexical: list[tuple[int, float]],
        *,
        scope: Scope,
        top_k: int,
    ) -> tuple[Hit, ...]:
        dense_scores, lexical_scores = dict(dense), dict(lexical)
        ranking = convex_combination(dense, lexical)
        if dense and lexical:
            ranking = lift_mentioned(ranking, self._store.headed_texts([key for key, _ in ranking[:CANDIDATES]]))
        hits: list[Hit] = []
        while ranking and len(hits) < top_k:
            wanted = top_k - len(hits)
            batch, ranking = ranking[:wanted], ranking[wanted:]
            chunks = self._store.chunks([key for key, _ in batch], scope=scope)
            for key, fused in batch:
                if key in chunks:
                    scores = Scores(fused=fused, dense=dense_scores.get(key), lexical=lexical_scores.get(key))
                    hits.append(Hit(chunk=chunks[key], scores=scores))
        return tuple(hits)
