"""Term statistics of a tenant's collections, so that BM25 weighs rarity within the scope."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from retrieval.terms import lucene_idf

if TYPE_CHECKING:
    import tantivy

Term: TypeAlias = tuple[str, str]
"""A field and a value in it."""

_MOST_KNOWN = 100_000  # counts remembered, some 20 MB
_MOST_NAMED = 64  # collections; more are looked up as a set, which costs the same for one as for many


@dataclass(frozen=True, slots=True)
class TantivyScope:
    """A search scope: a tenant's chunks, in all or some collections."""

    tenant_id: str
    collection_ids: frozenset[str] | None

    def holds_all(self, searcher: "tantivy.Searcher") -> bool:
        """Whether every chunk of the index is in scope. A chunk removed a moment ago may make it seem not so."""
        if any(tenant != self.tenant_id for tenant, _ in searcher.terms_with_prefix("tenant", "", limit=2)):
            return False
        if self.collection_ids is None:
            return True
        found = searcher.terms_with_prefix("collection", "", limit=len(self.collection_ids) + 1)
        return all(collection in self.collection_ids for collection, _ in found)

    def conditions(self, schema: "tantivy.Schema") -> "list[tantivy.Query]":
        """The query conditions of the scope; they do not change scores."""
        import tantivy

        query, should = tantivy.Query, tantivy.Occur.Should

        def being(field: str, value: str) -> "tantivy.Query":
            return query.term_query(schema, field, value, index_option="basic")

        each = [being("tenant", self.tenant_id)]
        if self.collection_ids is not None:
            names = sorted(self.collection_ids)
            each.append(
                query.boolean_query([(should, being("collection", name)) for name in names])
                if len(names) <= _MOST_NAMED
                else query.term_set_query(schema, "collection", names)
            )
        return [query.const_score_query(condition, 0.0) for condition in each]


class DocumentFrequencies:
    """Document frequencies of terms in a scope, cached until the next commit. Safe to call from several threads."""

    def __init__(self, schema: "tantivy.Schema") -> None:
        self._schema = schema
        self._known: dict[tuple[TantivyScope, Term | None], int] = {}

    def boosts(self, searcher: "tantivy.Searcher", terms: Iterable[Term], *, scope: TantivyScope) -> dict[Term, float]:
        """The factor for each term's score that corrects its rarity to the scope; absent terms are left out.

        tantivy weighs a term by its inverse document frequency in the whole index. The ratio of the scope's to that
        makes the score that of an index of the scope alone, but for the average length, which stays the
        index's.
        """
        conditions = scope.conditions(self._schema)
        counts = {term: self._count(searcher, term, scope, conditions) for term in terms}
        held = {term: count for term, count in counts.items() if count}
        if not held:
            return {}
        in_scope = max(self._count(searcher, None, scope, conditions), *held.values())
        in_all = self._total(searcher, held)
        return {
            term: lucene_idf(count, total=in_scope) / lucene_idf(searcher.doc_freq(*term), total=in_all)
            for term, count in held.items()
        }

    def query(self, term: Term) -> "tantivy.Query":
        """The chunks that hold a term, by BM25."""
        import tantivy

        return tantivy.Query.term_query(self._schema, *term, index_option="freq")

    def _count(
        self,
        searcher: "tantivy.Searcher",
        term: Term | None,
        scope: TantivyScope,
        conditions: "Sequence[tantivy.Query]",
    ) -> int:
        """How many chunks in scope hold `term`, how many there are for `None`."""
        import tantivy

        known = self._known.get((scope, term))
        if known is not None:
            return known
        all_of = [*conditions, self.query(term)] if term is not None else conditions
        matching = tantivy.Query.boolean_query([(tantivy.Occur.Must, each) for each in all_of])
        result = searcher.search(tantivy.Query.const_score_query(matching, 0.0), limit=1, count=True)
        count = int(result.count or 0)  # type: ignore[attr-defined]  # missing in the stubs
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[scope, term] = count
        return count

    def _total(self, searcher: "tantivy.Searcher", terms: Iterable[Term]) -> int:
        """The number of chunks tantivy counts with: those removed are in it until their segment is merged.

        Only the explanation of a score has it.
        """
        for term in sorted(terms, key=lambda each: searcher.doc_freq(*each)):
            hits = searcher.search(self.query(term), limit=1, count=False).hits
            for _, address in hits:
                idf = json.loads(self.query(term).explain(searcher, address).to_json())["details"][1]
                return int(idf["details"][1]["value"])
        return max(int(searcher.num_docs), *(searcher.doc_freq(*term) for term in terms))  # all gone this moment
