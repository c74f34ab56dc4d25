"""BM25 (Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75) over postings that a database returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from retrieval.numbered_terms import LEVELS, Field, Term
from retrieval.ports import Keys
from retrieval.terms import lucene_idf

_Counts: TypeAlias = npt.NDArray[np.int64]
Weights: TypeAlias = npt.NDArray[np.float64]

K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class ScopeTotals:
    """The number of chunks in a scope, and the mean length of each field in terms, 1 where no chunk has it."""

    chunks: int
    mean: Mapping[Field, float]


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks that hold a term, `(n,)` each: keys sorted ascending, how often, and the lengths of their fields."""

    keys: Keys
    counts: _Counts
    lengths: _Counts

    @classmethod
    def of_levels(cls, keys: Keys, lengths: _Counts, more: Sequence[tuple[int, Keys]]) -> "Postings":
        """From the chunks of the first level, each key once in any order, and (level, keys) of the next ones."""
        order = np.argsort(keys)
        keys, lengths = keys[order], lengths[order]
        counts = np.full(len(keys), LEVELS[0])
        for level, its_keys in sorted(more, key=lambda each: each[0]):
            place = np.minimum(np.searchsorted(keys, its_keys), len(keys) - 1)
            counts[place[keys[place] == its_keys]] = LEVELS[level]
        return cls(keys, counts, lengths)

    @classmethod
    def of_counts(cls, keys: Keys, counts: _Counts, lengths: _Counts) -> "Postings":
        """From keys in any order, each once."""
        order = np.argsort(keys)
        return cls(keys[order], counts[order], lengths[order])

    def where(self, inside: npt.NDArray[np.bool_]) -> "Postings":
        """Those of some chunks, by `(n,)` flags."""
        return Postings(self.keys[inside], self.counts[inside], self.lengths[inside])

    def weights(self, *, mean: float, idf: float) -> Weights:
        """`(n,)` BM25 scores by this term alone."""
        saturated = self.counts * (K1 + 1) / (self.counts + K1 * (1 - B + B * self.lengths / mean))
        return idf * saturated


def ranked(
    groups: Sequence[Sequence[Term]],
    postings: Mapping[Term, Postings],
    *,
    holding: Mapping[Term, int],
    totals: ScopeTotals,
) -> tuple[Keys, Weights]:
    """The chunks that hold all terms of a group, with the sum of their scores by each group that they hold.

    Args:
        groups: Of terms; each group's terms are distinct.
        postings: Of terms that some chunk holds; a group with another term has no chunk.
        holding: How many chunks of the scope hold each of these terms.
        totals: Of the scope.

    Returns:
        Keys and scores, `(n,)` each, best first, ties by key ascending.
    """
    keys: list[Keys] = []
    scores: list[Weights] = []
    for group in groups:
        if not postings.keys() >= set(group):
            continue
        for term in group:
            its = postings[term]
            idf = lucene_idf(holding[term], total=max(totals.chunks, holding[term]))
            weights = its.weights(mean=totals.mean[term[0]], idf=idf)
            inside = _held_by_all(its.keys, [postings[other].keys for other in group if other != term])
            keys.append(its.keys[inside])
            scores.append(weights[inside])
    if not keys:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    distinct, place = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.zeros(len(distinct))
    np.add.at(total, place, np.concatenate(scores))
    order = np.argsort(-total, kind="stable")  # distinct keys ascend: ties are ordered by key
    return distinct[order], total[order]


def _held_by_all(keys: Keys, others: Sequence[Keys]) -> npt.NDArray[np.bool_]:
    inside = np.ones(len(keys), bool)
    for other in others:
        inside &= np.isin(keys, other, assume_unique=True)
    return inside
