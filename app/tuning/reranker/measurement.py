"""How much a reranker improves on the first stage: nDCG@10 of both, and of mixtures of their scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.tuning.reranker.examples import Candidates
from app.tuning.reranker.first_stage import FloatScores, unit_range

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def ndcg(ranked: Sequence[bool], *, missing: int, k: int = 10) -> float:
    """Normalised discounted cumulative gain of the first `k` of a ranking, grades being 0 and 1.

    `missing` relevant documents are not in the ranking at all (Järvelin and Kekäläinen 2002).
    """
    discounts = 1 / np.log2(np.arange(2, k + 2))
    gain = float(np.dot(np.array(ranked[:k], dtype=np.float64), discounts[: len(ranked[:k])]))
    ideal = float(discounts[: min(k, sum(ranked) + missing)].sum())
    return gain / ideal if ideal else 0.0


def mixed(first_stage: FloatScores, rerank: FloatScores, *, share: float) -> FloatScores:
    """`share` of the rerank scores and the rest of the first stage's, each scaled to [0, 1] per question."""
    mixture: FloatScores = np.float32(share) * unit_range(rerank) + np.float32(1 - share) * unit_range(first_stage)
    return mixture


def measure(model: Any, found: Sequence[Candidates], *, batch_size: int = 16) -> dict[float, float]:
    """Mean nDCG@10 by the share of the rerank score in the mixture; 0 is the first stage, 1 the reranker alone."""
    values: dict[float, list[float]] = {share: [] for share in SHARES}
    for candidates in found:
        pairs = [(candidates.query, passage) for passage in candidates.passages]
        rerank = np.asarray(model.predict(pairs, batch_size=batch_size, show_progress_bar=False), dtype=np.float32)
        first = np.array(candidates.scores, dtype=np.float32)
        for share in SHARES:
            order = np.argsort(-mixed(first, rerank, share=share), kind="stable")
            ranked = [candidates.relevant[row] for row in order]
            values[share].append(ndcg(ranked, missing=candidates.missing))
    return {share: float(np.mean(scores)) for share, scores in values.items()}
