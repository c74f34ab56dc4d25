"""BM25 written out: what every keyword index is compared with."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

Weigh = Callable[[int, int], float]


def lucene(holding: int, total: int) -> float:
    """tantivy's weight of a word that `holding` of `total` texts have."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def sqlite(holding: int, total: int) -> float:
    """FTS5's."""
    return max(1e-6, math.log((total - holding + 0.5) / (holding + 0.5)))


def bm25(
    counts: Mapping[int, Mapping[str, float]],
    lengths: Mapping[int, int],
    query: Sequence[str],
    *,
    scope: Collection[int],
    weigh: Weigh,
) -> dict[int, float]:
    """Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75: the score of each text in scope that holds a word.

    Args:
        counts: Of every text, how often it holds a word; headings may count more than once.
        lengths: Of every text, in words. The mean is that of all texts.
        query: Distinct words.
        scope: Whose words' rarity counts.
        weigh: A word's weight.
    """
    mean = sum(lengths.values()) / len(lengths)
    scores: dict[int, float] = {}
    for word in query:
        holding = [key for key in scope if counts[key].get(word)]
        for key in holding:
            count, norm = counts[key][word], 1.2 * (1 - 0.75 + 0.75 * lengths[key] / mean)
            scores[key] = scores.get(key, 0.0) + weigh(len(holding), len(scope)) * count * 2.2 / (count + norm)
    return scores
