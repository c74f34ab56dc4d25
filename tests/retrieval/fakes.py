"""Small honest implementations of retrieval's ports, and short ways to make its nouns."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from retrieval.filters import matches
from retrieval.key_set import KeySet
from retrieval.ports import VectorIndex, Vectors
from retrieval.types import Chunk, EmbedderInfo, Hit, Metadata, Scope, Scores


def chunk(
    key: int = 1,
    text: str = "Some text.",
    *,
    document_id: str = "doc_1",
    version: int = 1,
    collection_id: str = "col_1",
    filename: str = "a.txt",
    start_char: int = 0,
    page_start: int | None = None,
    page_end: int | None = None,
    heading_path: tuple[str, ...] = (),
) -> Chunk:
    return Chunk(
        key=key,
        id=f"chunk_{key}",
        document_id=document_id,
        version=version,
        collection_id=collection_id,
        filename=filename,
        external_id=None,
        ordinal=key,
        text=text,
        start_char=start_char,
        end_char=start_char + len(text),
        page_start=page_start,
        page_end=page_end,
        heading_path=heading_path,
        token_count=len(text.split()),
    )


def ranked(*texts: str) -> list[Hit]:
    """Hits for `texts`, best first, each of its own document."""
    return [
        hit(chunk(rank, text, document_id=f"doc_{rank}", filename=f"{rank}.txt"), rank=rank)
        for rank, text in enumerate(texts, start=1)
    ]


def hit(found: Chunk, *, rank: int = 1) -> Hit:
    return Hit(chunk=found, scores=Scores(fused=1 / (60 + rank)))


class HashingEmbedder:
    """Implements `Embedder`: each word is a pseudo-random direction, a text their normalised sum.

    A prompt of `prompt_tokens` is counted before every text and changes nothing else.
    """

    def __init__(self, *, dim: int = 64, max_tokens: int = 32, prompt_tokens: int = 0) -> None:
        self._info = EmbedderInfo(model="hashing", revision="1", dim=dim, max_tokens=max_tokens)
        self._prompt_tokens = prompt_tokens
        self.embedded: list[str] = []

    @property
    def info(self) -> EmbedderInfo:
        return self._info

    def count_tokens(self, text: str) -> int:
        return len(text.split()) + 2

    def count_query(self, text: str) -> int:
        return self._prompt_tokens + min(self.count_tokens(text), self._info.max_tokens)

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        return self._prompt_tokens * len(texts) + sum(counted)

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        rows = np.stack([self._vector(text) for text in texts]) if texts else np.empty((0, self._info.dim), np.float32)
        if on_batch is not None:
            on_batch(len(texts))
        return rows

    def embed_query(self, text: str) -> Vectors:
        self.embedded.append(text)
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        total = np.full(self._info.dim, 1e-6)
        for word in text.casefold().split()[: self._info.max_tokens - 2]:
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            total += np.random.default_rng(seed).standard_normal(self._info.dim)
        vector: Vectors = (total / np.linalg.norm(total)).astype(np.float32)
        return vector


class TopicEmbedder(HashingEmbedder):
    """Embeds questions near to all documents where they have one of the given words, else far from them."""

    def __init__(self, *words: str, max_tokens: int = 64) -> None:
        super().__init__(max_tokens=max_tokens)
        self._words = words

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        rows = super().embed_documents(texts, on_batch=on_batch)
        return np.stack([_beside(row, 1.0) for row in rows]) if texts else rows

    def embed_query(self, text: str) -> Vectors:
        near = any(word in text for word in self._words)
        return _beside(super().embed_query(text), 1.0 if near else -1.0)


def _beside(vector: Vectors, side: float) -> Vectors:
    """The vector turned half to one side of the last axis."""
    rest = vector[:-1] / np.linalg.norm(vector[:-1])
    turned: Vectors = (np.append(rest, side) / np.sqrt(2)).astype(np.float32)
    return turned


class Inside:
    """Implements `DenseIndex`: an index of vectors, asked for the keys that a store has in scope."""

    def __init__(self, index: Callable[[], VectorIndex], store: "MemoryStore") -> None:
        self._index, self._store = index, store

    def search_vector(self, vector: Vectors, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        return self._index().search(vector, k=k, allowed=self._store.keys_in(scope))


class MemoryStore:
    """Implements `ChunkStore` and `LexicalIndex` over a dictionary; one tenant and one metadata a chunk."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[str, Chunk, Metadata]] = {}

    def put(self, found: Chunk, *, tenant_id: str = "t", metadata: Metadata | None = None) -> None:
        self._rows[found.key] = (tenant_id, found, metadata or {})

    def delete(self, key: int) -> None:
        del self._rows[key]

    def rename(self, key: int, *, filename: str) -> None:
        tenant_id, found, metadata = self._rows[key]
        self._rows[key] = (tenant_id, replace(found, filename=filename), metadata)

    def keys_in(self, scope: Scope) -> KeySet:
        return KeySet(np.array([found.key for found in self._visible(scope)], dtype=np.int64))

    def holds(self, scope: Scope) -> bool:
        return len(self.keys_in(scope)) > 0

    def chunks(self, keys: Sequence[int], *, scope: Scope) -> dict[int, Chunk]:
        return {found.key: found for found in self._visible(scope) if found.key in keys}

    def headed_texts(self, keys: Sequence[int]) -> dict[int, tuple[str, str]]:
        found = (self._rows[key][1] for key in keys if key in self._rows)
        return {each.key: (each.heading_path[-1] if each.heading_path else "", each.text) for each in found}

    def search_text(self, query: str, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        wanted = set(query.casefold().split())
        scored = [
            (found.key, float(len(wanted & set(found.text.casefold().split())))) for found in self._visible(scope)
        ]
        return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))[:k]

    def _visible(self, scope: Scope) -> Iterable[Chunk]:
        for tenant_id, found, metadata in self._rows.values():
            if (
                tenant_id == scope.tenant_id
                and (scope.collection_ids is None or found.collection_id in scope.collection_ids)
                and (scope.document_ids is None or found.document_id in scope.document_ids)
                and (scope.filter is None or matches(scope.filter, metadata))
            ):
                yield found
