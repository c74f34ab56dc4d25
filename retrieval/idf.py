"""Inverse document frequency: what a word is worth by how few texts hold it."""

import math

_LEAST = 1e-6


def lucene_idf(holding: int, *, total: int) -> float:
    """BM25's weight of a word that `holding` of `total` texts have, as Lucene and tantivy count it: never negative.

    `ln(1 + (N - n + 0.5) / (n + 0.5))`, Robertson and Zaragoza 2009 with one added against negative weights.
    """
    assert 0 <= holding <= total, "of the texts, some hold it"
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def sqlite_idf(holding: int, *, total: int) -> float:
    """The same as SQLite's `bm25()` counts it (ext/fts5/fts5_aux.c): a word that most texts have weighs 0.000001.

    `ln((N - n + 0.5) / (n + 0.5))`, Robertson and Zaragoza 2009.
    """
    assert 0 <= holding <= total, "of the texts, some hold it"
    return max(math.log((total - holding + 0.5) / (holding + 0.5)), _LEAST)
