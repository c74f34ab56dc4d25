"""A keyword index on tantivy: BM25 search over chunks, with checksums verified at opening."""

import json
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retrieval.errors import IndexCorrupt
from retrieval.key_set import KeySet
from retrieval.ports import Keys
from retrieval.tantivy_fields import (
    FORMAT,
    LexicalEntry,
    TantivyDocuments,
    composed,
    parts_analyzer,
    schema,
    words_analyzer,
)
from retrieval.tantivy_scope import DocumentFrequencies, TantivyScope, Term
from retrieval.terms import is_unspaced, windows, words

if TYPE_CHECKING:
    import tantivy


_FOOTER_MAGIC = 1337
_READ_BYTES = 1 << 20


def verify(folder: Path) -> None:
    """Checks every file of the last commit against its checksum.

    Raises:
        IndexCorrupt: A file is missing, cut off or changed.
        OSError, ValueError, KeyError, TypeError: A file cannot be read or has invalid content.
    """
    for file in _segment_files(folder):
        _verify(file)


def _segment_files(folder: Path) -> Iterator[Path]:
    segments = json.loads((folder / "meta.json").read_bytes())["segments"]
    known = [segment["segment_id"].replace("-", "") for segment in segments]
    for name in known:
        files = list(folder.glob(f"{name}.*"))
        if not files:
            raise IndexCorrupt("A part of the keyword index is missing.")
        yield from files


def _verify(path: Path) -> None:
    """Checks one file against its checksum footer: body, JSON with its CRC-32, JSON's length, a magic number."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length, magic = int.from_bytes(tail[:4], "little"), int.from_bytes(tail[4:], "little")
        if len(tail) < 8 or magic != _FOOTER_MAGIC or length + 8 > size:
            raise IndexCorrupt("A file of the keyword index is cut off.")
        file.seek(size - 8 - length)
        expected = json.loads(file.read(length))["crc"]
        file.seek(0)
        left, crc = size - 8 - length, 0
        while left:
            data = file.read(min(left, _READ_BYTES))
            if not data:
                raise IndexCorrupt("A file of the keyword index is cut off.")
            crc, left = zlib.crc32(data, crc), left - len(data)
    if crc != expected:
        raise IndexCorrupt("A file of the keyword index does not match its checksum.")


MANIFEST = "footnote.json"
_HEAP_BYTES = 64 << 20  # memory that a writer fills before it writes a segment
_LISTED_KEYS = 4096  # a scope up to here is asked for by key, a larger one read off a longer ranking
_SPARE = 16  # hits looked at beyond those wanted, to settle ties
_DEEP = 1 << 16  # ranks; ties that reach deeper are settled by tantivy's order
_KEYS_AT_ONCE = 100_000


class TantivyIndex:
    """Chunks by their words. Searches may run while another thread writes; writers take turns.

    Words are runs of letters, digits and marks, in lower case, without diacritics, stemmed by
    Porter's English rules; BM25 (Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75) over headings and
    text as one field, headings counted three times. Text without words, or inside one, is in a
    second field; see `retrieval.terms.inner_parts`.
    """

    def __init__(self, index: "tantivy.Index") -> None:
        import tantivy

        self._tantivy = tantivy
        self._index = index
        self._schema = index.schema
        self._analyzer = words_analyzer()
        index.register_tokenizer("words", self._analyzer)
        index.register_tokenizer("parts", parts_analyzer())
        self._documents = TantivyDocuments()
        self._frequencies = DocumentFrequencies(self._schema)
        self._writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        self._writing = threading.Lock()

    @classmethod
    def create(cls, folder: Path) -> "TantivyIndex":
        """A new, empty index in `folder`, which must be empty or absent.

        Raises:
            OSError: The disk is full or refuses.
        """
        import tantivy

        folder.mkdir(parents=True, exist_ok=True)
        assert not any(folder.iterdir()), "a new index needs an empty folder"
        index = cls(tantivy.Index(schema(), path=str(folder)))
        (folder / MANIFEST).write_text(json.dumps({"format": FORMAT}))
        return index

    @classmethod
    def open(cls, folder: Path) -> "TantivyIndex":
        """The index in `folder` as its last commit left it, after every checksum was verified.

        Raises:
            IndexCorrupt: It is absent, damaged or of another format; the message says which.
        """
        import tantivy

        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
            if manifest != {"format": FORMAT}:
                raise IndexCorrupt("The keyword index has another format.")
            verify(folder)
            return cls(tantivy.Index.open(str(folder)))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexCorrupt(f"The keyword index cannot be read ({type(error).__name__}).") from error

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs)

    def keys(self) -> Keys:
        """Every key committed, sorted ascending."""
        searcher, query, order = self._index.searcher(), self._tantivy.Query, self._tantivy.Order.Asc
        integer = self._tantivy.FieldType.Integer
        found: list[int] = []
        while len(found) < searcher.num_docs:
            after = found[-1] + 1 if found else 0
            rest = query.range_query(self._schema, "key", integer, lower_bound=after)
            hits = searcher.search(rest, limit=_KEYS_AT_ONCE, count=False, order_by_field="key", order=order).hits
            found += [int(key) for key, _ in hits]
        return np.array(found, dtype=np.int64)

    def add(self, entries: Iterable[LexicalEntry]) -> None:
        """Add chunks with new keys, to be found after the next `commit`; `remove` replaced ones first."""
        with self._writing:
            for entry in entries:
                self._writer.add_document(self._documents.of(entry))

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove chunks, gone after the next `commit`; unknown keys are ignored."""
        with self._writing:
            for key in keys:
                self._writer.delete_documents_by_term("key", int(key))

    def commit(self) -> None:
        """Commits additions and removals: they become durable and visible to the next search.

        Raises:
            OSError, ValueError: The disk is full or refuses; the last commit is kept.
        """
        with self._writing:
            self._writer.commit()
            self._index.reload()
            self._frequencies = DocumentFrequencies(self._schema)

    def close(self) -> None:
        """Waits for background merges and closes; uncommitted changes are lost."""
        with self._writing:
            self._writer.rollback()
            self._writer.wait_merging_threads()

    def search(
        self, query: str, *, tenant_id: str, collection_ids: Sequence[str] | None, allowed: KeySet | None, k: int
    ) -> list[tuple[int, float]]:
        """At most `k` (key, BM25 score) best first, ties by key ascending; any text is a valid query.

        Args:
            query: Cut to its first 64 telling words.
            tenant_id: The tenant of the chunks.
            collection_ids: In which collections; `None` for all.
            allowed: Keys the search is restricted to, as a vector index is; `None` for all.
            k: How many; that many come back when as many match.
        """
        assert k >= 0, "a number of results"
        terms = words(composed(query))
        if not terms or k == 0 or (allowed is not None and not len(allowed)):
            return []
        scope = TantivyScope(tenant_id, None if collection_ids is None else frozenset(collection_ids))
        frequencies, searcher = self._frequencies, self._index.searcher()  # in this order: no count outlives its commit
        conditions = [] if (everything := scope.holds_all(searcher)) else scope.conditions(self._schema)
        if allowed is not None and len(allowed) <= _LISTED_KEYS:
            listed = self._tantivy.Query.term_set_query(self._schema, "key", allowed.tolist())
            conditions.append(self._tantivy.Query.const_score_query(listed, 0.0))

        def found(groups: list[list[Term]]) -> list[tuple[int, float]]:
            """Chunks that contain all terms of at least one group."""
            distinct = dict.fromkeys(term for group in groups for term in group)
            boosts = dict.fromkeys(distinct, 1.0) if everything else frequencies.boosts(searcher, distinct, scope=scope)
            held = [
                [self._query(term, boosts[term]) for term in group] for group in groups if boosts.keys() >= {*group}
            ]
            return self._best(searcher, self._any([self._all(each) for each in held], conditions), allowed, k)

        hits = found(self._words(terms))
        if not hits and not any(is_unspaced(term) for term in terms):
            hits = found(_inner(terms))
        return hits

    def _best(
        self, searcher: "tantivy.Searcher", query: "tantivy.Query | None", allowed: KeySet | None, k: int
    ) -> list[tuple[int, float]]:
        """A ranking with at least `k` allowed chunks and all ties with the last of them."""
        if query is None:
            return []
        limit = k + _SPARE
        while True:
            hits = searcher.search(query, limit=limit, count=False).hits
            keys = _integers(searcher.fast_field_values("key", [address for _, address in hits]))
            inside = np.ones(len(keys), bool) if allowed is None else allowed.contains(np.array(keys, np.int64))
            found = [(key, float(score)) for key, (score, _), ok in zip(keys, hits, inside, strict=True) if ok]
            settled = len(hits) < limit or (len(found) >= k and found[k - 1][1] > hits[-1][0])
            if settled or (limit >= _DEEP and len(found) >= k):
                return sorted(found, key=lambda each: (-each[1], each[0]))[:k]
            limit *= 4

    def _words(self, terms: Sequence[str]) -> list[list[Term]]:
        """Stems, and of unspaced scripts pairs, each alone."""
        spaced = [term for term in terms if not is_unspaced(term)]
        stems = dict.fromkeys(stem for term in spaced for stem in self._analyzer.analyze(term))
        pairs = dict.fromkeys(pair for term in terms if is_unspaced(term) for pair in windows(term, size=2))
        return [[("text", stem)] for stem in stems] + [[("part", pair)] for pair in pairs]

    def _query(self, term: Term, boost: float) -> "tantivy.Query":
        query = self._frequencies.query(term)
        return query if boost == 1.0 else self._tantivy.Query.boost_query(query, boost)

    def _all(self, queries: "Sequence[tantivy.Query]") -> "tantivy.Query":
        if len(queries) == 1:
            return queries[0]
        return self._tantivy.Query.boolean_query([(self._tantivy.Occur.Must, query) for query in queries])

    def _any(self, queries: "Sequence[tantivy.Query]", conditions: "Sequence[tantivy.Query]") -> "tantivy.Query | None":
        if not queries:
            return None
        should, boolean = self._tantivy.Occur.Should, self._tantivy.Query.boolean_query
        one = boolean([(should, query) for query in queries])
        return self._all([one, *conditions])


def _inner(terms: Sequence[str]) -> list[list[Term]]:
    """The trigrams of each term of three or more characters."""
    return [[("part", triple) for triple in dict.fromkeys(windows(term, size=3))] for term in terms if len(term) >= 3]


def _integers(values: "list[int | float | bool | None]") -> list[int]:
    return [int(value) for value in values if value is not None]
