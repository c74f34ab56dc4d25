"""One ranking out of several."""

from collections.abc import Sequence
from math import fsum


def reciprocal_rank_fusion(rankings: Sequence[Sequence[int]], *, k: int = 60) -> list[tuple[int, float]]:
    """Fuse rankings by the sum of `1 / (k + rank)`, rank counting from 1.

    Only ranks are read, so rankings whose scores are on different scales fuse without tuning
    (Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods", SIGIR; k = 60 is theirs).

    Args:
        rankings: Keys best first, each key at most once in a ranking.
        k: Dampens the advantage of the first ranks; at least 0.

    Returns:
        Every key of any ranking with its score, best first, ties by key ascending. The order of
        `rankings` does not matter.
    """
    assert k >= 0, "a negative k could divide by zero"
    shares: dict[int, list[float]] = {}
    for ranking in rankings:
        assert len(set(ranking)) == len(ranking), "a ranking holds a key at most once"
        for rank, key in enumerate(ranking, start=1):
            shares.setdefault(key, []).append(1.0 / (k + rank))
    # fsum rounds once, so equal ranks in another order tie exactly instead of by luck.
    fused = [(key, fsum(parts)) for key, parts in shares.items()]
    return sorted(fused, key=lambda pair: (-pair[1], pair[0]))
