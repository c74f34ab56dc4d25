"""A keyword index beside the database, by tantivy: BM25 over millions of chunks in milliseconds.

It is derived, as the vector index is: SQL is the truth, what differs is mended, what is doubtful is
built anew. A commit is atomic and durable; segments are immutable and end in a checksum.
"""

import json
import threading
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retrieval.errors import IndexCorrupt
from retrieval.key_set import KeySet
from retrieval.ports import Keys
from retrieval.terms import inner_parts, is_unspaced, windows, words

if TYPE_CHECKING:
    import tantivy

FORMAT = 1  # of fields and analysis; another one is built anew
MANIFEST = "footnote.json"
_HEADING_WEIGHT = 3  # times a heading's words count: chosen on four sets of questions
_HEAP_BYTES = 64 << 20  # what a writer gathers before it writes a segment
_LISTED_KEYS = 4096  # a scope up to here is asked for by key, a larger one read off a longer ranking
_SPARE = 16  # hits looked at beyond those wanted, to settle ties
_DEEP = 1 << 16  # ranks; ties that reach deeper are settled by tantivy's order
_FOOTER_MAGIC = 1337
_READ_BYTES = 1 << 20
_KEYS_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """A chunk as the keyword index needs it."""

    key: int
    tenant_id: str
    collection_id: str
    heading: str
    text: str


class TantivyIndex:
    """Chunks by their words. Searches may run while another thread writes; writers take turns.

    Words are runs of letters, digits and marks, in lower case, without diacritics, stemmed by
    Porter's English rules; BM25 (Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75) over headings and
    text as one field, headings counted three times. What has no words, or hides in one, is in a
    second field; see `retrieval.terms.inner_parts`.
    """

    def __init__(self, index: "tantivy.Index") -> None:
        import tantivy

        self._tantivy = tantivy
        self._index = index
        self._schema = index.schema
        self._analyzer = _words_analyzer()
        index.register_tokenizer("words", self._analyzer)
        index.register_tokenizer("parts", _parts_analyzer())
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
        index = cls(tantivy.Index(_schema(), path=str(folder)))
        (folder / MANIFEST).write_text(json.dumps({"format": FORMAT}))
        return index

    @classmethod
    def open(cls, folder: Path) -> "TantivyIndex":
        """The index in `folder` as its last commit left it, after every checksum was verified.

        Raises:
            IndexCorrupt: It is absent, damaged or of another format; the message says what.
        """
        import tantivy

        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
            if manifest != {"format": FORMAT}:
                raise IndexCorrupt("The keyword index has another format.")
            for file in _segment_files(folder):
                _verify(file)
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
        """Add chunks whose keys are not held, to be found after the next `commit`; `remove` first what is replaced."""
        with self._writing:
            for entry in entries:
                self._writer.add_document(self._document(entry))

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove chunks, gone after the next `commit`; unknown keys are ignored."""
        with self._writing:
            for key in keys:
                self._writer.delete_documents_by_term("key", int(key))

    def commit(self) -> None:
        """Make what was added and removed durable, and visible to the next search.

        Raises:
            OSError, ValueError: The disk is full or refuses; the last commit still stands.
        """
        with self._writing:
            self._writer.commit()
            self._index.reload()

    def close(self) -> None:
        """Let background merges end; what was not committed is lost. Searches no more."""
        with self._writing:
            self._writer.rollback()
            self._writer.wait_merging_threads()

    def search(
        self, query: str, *, tenant_id: str, collection_ids: Sequence[str] | None, allowed: KeySet | None, k: int
    ) -> list[tuple[int, float]]:
        """At most `k` (key, BM25 score) best first, ties by key ascending; any text is a valid query.

        Args:
            query: Cut to its first 64 telling words.
            tenant_id: Whose chunks.
            collection_ids: In which collections; `None` for all.
            allowed: Keys the search is restricted to, as a vector index is; `None` for all.
            k: How many; that many come back when as many match.
        """
        assert k >= 0, "a number of results"
        terms = words(_composed(query))
        if not terms or k == 0 or (allowed is not None and not len(allowed)):
            return []
        scope = self._scope(tenant_id, collection_ids, allowed)
        found = self._best(self._any_word(terms), scope, allowed, k)
        if not found and not any(is_unspaced(term) for term in terms):
            found = self._best(self._any_containing(terms), scope, allowed, k)
        return found

    def _best(
        self,
        matching: "tantivy.Query | None",
        scope: "list[tuple[tantivy.Occur, tantivy.Query]]",
        allowed: KeySet | None,
        k: int,
    ) -> list[tuple[int, float]]:
        """A ranking long enough that `k` in scope are in it, and all that tie with the last of them."""
        if matching is None:
            return []
        query = self._tantivy.Query.boolean_query([(self._tantivy.Occur.Must, matching), *scope])
        searcher = self._index.searcher()
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

    def _scope(
        self, tenant_id: str, collection_ids: Sequence[str] | None, allowed: KeySet | None
    ) -> "list[tuple[tantivy.Occur, tantivy.Query]]":
        query = self._tantivy.Query
        conditions = [query.term_query(self._schema, "tenant", tenant_id, index_option="basic")]
        if collection_ids is not None:
            conditions.append(query.term_set_query(self._schema, "collection", list(collection_ids)))
        if allowed is not None and len(allowed) <= _LISTED_KEYS:
            conditions.append(query.term_set_query(self._schema, "key", allowed.tolist()))
        return [(self._tantivy.Occur.Must, query.const_score_query(each, 0.0)) for each in conditions]

    def _any_word(self, terms: Sequence[str]) -> "tantivy.Query | None":
        spaced = [term for term in terms if not is_unspaced(term)]
        stems = dict.fromkeys(stem for term in spaced for stem in self._analyzer.analyze(term))
        pairs = dict.fromkeys(pair for term in terms if is_unspaced(term) for pair in windows(term, size=2))
        return self._any([self._term("text", stem) for stem in stems] + [self._term("part", pair) for pair in pairs])

    def _any_containing(self, terms: Sequence[str]) -> "tantivy.Query | None":
        must, boolean = self._tantivy.Occur.Must, self._tantivy.Query.boolean_query
        triples = [dict.fromkeys(windows(term, size=3)) for term in terms if len(term) >= 3]
        return self._any([boolean([(must, self._term("part", triple)) for triple in each]) for each in triples])

    def _any(self, queries: "Sequence[tantivy.Query]") -> "tantivy.Query | None":
        should = self._tantivy.Occur.Should
        return self._tantivy.Query.boolean_query([(should, query) for query in queries]) if queries else None

    def _term(self, field: str, value: str) -> "tantivy.Query":
        return self._tantivy.Query.term_query(self._schema, field, value, index_option="freq")

    def _document(self, entry: LexicalEntry) -> "tantivy.Document":
        heading, text = _composed(entry.heading), _composed(entry.text)
        document = self._tantivy.Document()
        document.add_integer("key", entry.key)
        document.add_text("tenant", entry.tenant_id)
        document.add_text("collection", entry.collection_id)
        document.add_text("text", f"{heading} " * _HEADING_WEIGHT + text)
        document.add_text("part", " ".join(inner_parts(f"{heading} {text}")))
        return document


def _schema() -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("key", indexed=True, fast=True)
    builder.add_text_field("tenant", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("collection", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("text", tokenizer_name="words", index_option="freq")
    builder.add_text_field("part", tokenizer_name="parts", index_option="freq")
    return builder.build()


def _words_analyzer() -> "tantivy.TextAnalyzer":
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.regex(r"[\p{L}\p{N}\p{M}]+"))
    for each in (Filter.remove_long(1024), Filter.lowercase(), Filter.ascii_fold(), Filter.stemmer("english")):
        builder = builder.filter(each)
    return builder.build()


def _parts_analyzer() -> "tantivy.TextAnalyzer":
    from tantivy import TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.regex(r"[^ ]+")).build()


def _composed(text: str) -> str:
    """Letters and their accents as one character each; half a surrogate pair becomes a blank."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode()


def _integers(values: "list[int | float | bool | None]") -> list[int]:
    return [int(value) for value in values if value is not None]


def _segment_files(folder: Path) -> Iterator[Path]:
    """The files of the last commit."""
    segments = json.loads((folder / "meta.json").read_bytes())["segments"]
    known = [segment["segment_id"].replace("-", "") for segment in segments]
    for name in known:
        files = list(folder.glob(f"{name}.*"))
        if not files:
            raise IndexCorrupt("A part of the keyword index is missing.")
        yield from files


def _verify(path: Path) -> None:
    """Check one file against the checksum it ends in: body, JSON with its CRC-32, JSON's length, a magic number."""
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
