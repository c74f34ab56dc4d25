"""BM25 ranking on PostgreSQL: the database returns postings, `retrieval.bm25` scores them (docs/adr/0115).

Terms, weights and lengths are those of the Tantivy index, but every count is that of the scope's collections. A term
that many chunks hold is common: it proposes no chunk, where others do, but weighs those that they propose.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa
from cachetools import LRUCache

from app.db.scopes import KeyMarks, all_keys, documents_in
from app.db.word_postings import ScopePostings
from retrieval.bm25 import ScopeTotals, ranked
from retrieval.numbered_terms import Term, asked, asked_inside
from retrieval.types import Scope

_COMMON = 10_000  # chunks
_PROPOSED = 512  # chunks
_LARGE = 20_000  # chunks of a scope that is counted by time alone
_COUNTED_SECONDS = 60.0
_MOST_SCOPES = 1024

_Found: TypeAlias = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class _Counted:
    """A scope's totals, the marks and the time at which they were counted, and how many chunks hold a common term."""

    totals: ScopeTotals
    marks: KeyMarks
    at: float
    common: dict[Term, int] = field(default_factory=dict)


class WordRanking:
    """Ranks the chunks of a scope by the words of a question. Safe to call from several threads.

    A scope's totals, and how many chunks hold a common term, are remembered until chunks come or go, and for a minute
    at most; in a scope of 20,000 chunks or more, for a minute.

    Example:
        >>> with database.read() as connection:
        ...     ranking.search(connection, "notice period", scope=Scope(tenant_id="acme"), k=10)
    """

    def __init__(
        self, *, common: int = _COMMON, proposed: int = _PROPOSED, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Create it.

        Args:
            common: So many chunks in scope make a term common.
            proposed: So many chunks, or four times as many as are asked for, are weighed by common terms: the best by
                the others.
            clock: Seconds.
        """
        self._common = common
        self._proposed = proposed
        self._clock = clock
        self._counted: LRUCache[tuple[str, frozenset[str] | None], _Counted] = LRUCache(_MOST_SCOPES)
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Count anew: chunks were deleted."""
        with self._lock:
            self._counted.clear()

    def search(self, connection: sa.Connection, query: str, *, scope: Scope, k: int) -> _Found:
        """At most `k` (key, score) of chunks in scope that hold a term of `query`, best first, ties by key."""
        for groups in (asked(query), asked_inside(query)):
            if groups and k and (found := self._search(connection, groups, scope, k)):
                return found
        return []

    def _search(self, connection: sa.Connection, groups: list[list[Term]], scope: Scope, k: int) -> _Found:
        postings = ScopePostings(connection, scope)
        counted = self._count(connection, postings, scope)
        terms = list(dict.fromkeys(term for group in groups for term in group))
        held = postings.of([term for term in terms if term not in counted.common], most=self._common)
        for term in [term for term, its in held.items() if len(its.keys) == self._common]:
            counted.common[term] = postings.count(term)
            del held[term]
        common = {term: counted.common[term] for term in terms if term in counted.common}
        holding = {term: len(its.keys) for term, its in held.items()} | common
        if common and not held:
            rarest = min(common, key=lambda term: (common[term], term))
            held = postings.of([rarest], most=None)
            del common[rarest]
        if scope.document_ids is not None or scope.filter is not None:
            inside = all_keys(connection, documents_in(scope, connection))
            held = {term: its.where(inside.contains(its.keys)) for term, its in held.items()}
        if common:
            known = [[term for term in group if term not in common] for group in groups if holding.keys() >= set(group)]
            proposed, _ = ranked([group for group in known if group], held, holding=holding, totals=counted.totals)
            proposed = np.sort(proposed[: max(self._proposed, 4 * k)])
            held = {term: its.where(np.isin(its.keys, proposed)) for term, its in held.items()}
            held |= postings.among(proposed, common)
        keys, scores = ranked(groups, held, holding=holding, totals=counted.totals)
        return list(zip(keys[:k].tolist(), scores[:k].tolist(), strict=True))

    def _count(self, connection: sa.Connection, postings: ScopePostings, scope: Scope) -> _Counted:
        name = scope.tenant_id, None if scope.collection_ids is None else frozenset(scope.collection_ids)
        marks, now = KeyMarks.read(connection), self._clock()
        with self._lock:
            known = self._counted.get(name)
        if (
            known is not None
            and now - known.at < _COUNTED_SECONDS
            and (known.marks == marks or known.totals.chunks >= _LARGE)
        ):
            return known
        counted = _Counted(postings.totals(), marks, now)
        with self._lock:
            self._counted[name] = counted
        return counted
