"""Postings of terms from PostgreSQL's `chunk_words`: which chunks of a scope hold a term, how often, and how long."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from retrieval.bm25 import Postings, ScopeTotals
from retrieval.numbered_terms import LEVEL_BITS, LEVELS, Term, number_of
from retrieval.ports import Keys
from retrieval.types import Scope

_HELD = np.dtype([("key", ">i8"), ("word", ">i4"), ("part", ">i4")])  # with the lengths of both fields
_NUMBER = np.dtype([("bytes", ">i4"), ("number", ">i8")])  # of an array as array_send gives it, after its head
_HEAD_BYTES = 20

# A number is of one tenant; the condition takes away what another one has by chance.
_TENANT = "tenant_id = :tenant"
_COLLECTIONS = f"{_TENANT} AND collection_id = ANY(:collections)"
_TOTALS = "SELECT count(*) AS chunks, sum(words) AS words, sum(parts) AS parts FROM chunk_words WHERE {}"
_COUNT = "SELECT count(*) FROM chunk_words WHERE numbers @> ARRAY[CAST(:number AS bigint)] AND {}"
_POSTINGS = """
SELECT asked.place, string_agg(int8send(held.key) || int4send(held.words) || int4send(held.parts), '')
FROM unnest(CAST(:numbers AS bigint[])) WITH ORDINALITY AS asked (number, place)
CROSS JOIN LATERAL (
    SELECT key, words, parts FROM chunk_words WHERE numbers @> ARRAY[asked.number] AND {} LIMIT :most
) AS held
GROUP BY asked.place
"""
# Compiling takes longer than reading, and a table without statistics would be read whole for each number.
_PLAN = sa.text("SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true)")
_WHOLE = sa.text("SELECT key, words, parts, array_send(numbers) FROM chunk_words WHERE key = ANY(:keys)")


class _Statements:
    """The statements of one kind of scope, composed once."""

    def __init__(self, inside: str) -> None:
        self.totals = sa.text(_TOTALS.format(inside))
        # The CASE hides the condition from indexes: PostgreSQL would read all keys of the scope for each number.
        hidden = f"CASE WHEN {inside} THEN true END"
        self.count, self.postings = (sa.text(each.format(hidden)) for each in (_COUNT, _POSTINGS))


_OF_TENANT, _OF_COLLECTIONS = _Statements(_TENANT), _Statements(_COLLECTIONS)


class ScopePostings:
    """The postings in the collections of a scope, whatever its documents and filter, within one transaction.

    It sets how the rest of the transaction is planned.

    Example:
        >>> ScopePostings(connection, Scope("acme")).of([("word", "notic")], most=None)
    """

    def __init__(self, connection: sa.Connection, scope: Scope) -> None:
        self._connection = connection
        self._tenant_id = scope.tenant_id
        self._values: dict[str, Any] = {"tenant": scope.tenant_id}
        self._statements = _OF_TENANT
        if scope.collection_ids is not None:
            self._values["collections"] = list(scope.collection_ids)
            self._statements = _OF_COLLECTIONS
        connection.execute(_PLAN)

    def totals(self) -> ScopeTotals:
        """The number of chunks and their mean lengths."""
        row = self._connection.execute(self._statements.totals, self._values).one()
        chunks, words, parts = row.chunks, row.words or row.chunks, row.parts or row.chunks
        return ScopeTotals(chunks, {"word": words / max(chunks, 1), "part": parts / max(chunks, 1)})

    def count(self, term: Term) -> int:
        """How many chunks hold a term."""
        asked = self._values | {"number": number_of(self._tenant_id, term)}
        return int(self._connection.execute(self._statements.count, asked).scalar_one())

    def of(self, terms: Sequence[Term], *, most: int | None) -> dict[Term, Postings]:
        """The postings of those terms that a chunk holds; of a term that more hold, any `most` of them."""
        firsts = [number_of(self._tenant_id, term) for term in terms]
        numbers = [first + level for first in firsts for level in range(len(LEVELS))]
        levels: dict[Term, dict[int, Any]] = {}
        if numbers:
            asked = self._values | {"numbers": numbers, "most": most}
            for place, packed in self._connection.execute(self._statements.postings, asked):
                at, level = divmod(place - 1, len(LEVELS))
                levels.setdefault(terms[at], {})[level] = np.frombuffer(packed, _HELD)
        found: dict[Term, Postings] = {}
        for term in (each for each in terms if each in levels):
            first = levels[term].pop(0)
            more = [(level, rows["key"].astype(np.int64)) for level, rows in levels[term].items()]
            lengths = first[term[0]].astype(np.int64)
            found[term] = Postings.of_levels(first["key"].astype(np.int64), lengths, more)
        return found

    def among(self, keys: Keys, terms: Collection[Term]) -> Mapping[Term, Postings]:
        """The postings of terms among a few chunks, whose rows are read whole."""
        rows = self._connection.execute(_WHOLE, {"keys": keys.tolist()}).all()
        if not rows:
            return {}
        held = np.array([row[0] for row in rows], np.int64)
        lengths = {"word": np.array([row[1] for row in rows]), "part": np.array([row[2] for row in rows])}
        arrays = [np.frombuffer(row[3], _NUMBER, offset=_HEAD_BYTES)["number"] for row in rows]
        owners = np.repeat(np.arange(len(rows)), [len(each) for each in arrays])
        numbers = np.concatenate(arrays).astype(np.int64)
        found: dict[Term, Postings] = {}
        for term in terms:
            mine = numbers >> LEVEL_BITS == number_of(self._tenant_id, term) >> LEVEL_BITS
            level = np.full(len(rows), -1)
            np.maximum.at(level, owners[mine], numbers[mine] & (1 << LEVEL_BITS) - 1)
            holds = level >= 0
            found[term] = Postings.of_counts(
                held[holds], np.array(LEVELS)[level[holds]], lengths[term[0]][holds].astype(np.int64)
            )
        return found
