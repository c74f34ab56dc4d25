"""Both searches over the same chunks, with their headings in front of them, without, and without any heading at all."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from retrieval.fusion import convex_combination
from retrieval.ports import Embedder, Vectors
from retrieval.tantivy_fields import LexicalEntry
from retrieval.tantivy_index import TantivyIndex
from retrieval.types import Chunk
from tests.retrieval.exact_index import ExactIndex

Ranking: TypeAlias = list[tuple[int, float]]

FIRST = "embedded and indexed"
_TENANT = "t"
_LINE = re.compile(r"^#{1,6} .*\n*", re.MULTILINE)


class Headings:
    """Rankings by what is done with headings.

    A chunk that begins a section has its heading in its text as well, so that "neither" takes away less
    than "in no text", where the lines are cut out too. Words are in the index beside the database: the
    database's own always has headings.
    """

    def __init__(self, chunks: Mapping[int, Chunk], embedder: Embedder, folder: Path) -> None:
        """`folder` is empty and holds the keyword indexes."""
        self._chunks = sorted(chunks.items())
        texts = [chunk.text for _, chunk in self._chunks]
        cut = [_LINE.sub("", text).strip() or text for text in texts]
        paths = [" > ".join(chunk.heading_path) for _, chunk in self._chunks]
        none = [""] * len(texts)
        self._words = {
            FIRST: self._lexical(folder / "front", paths, texts),
            "bare": self._lexical(folder / "bare", none, texts),
            "cut": self._lexical(folder / "cut", none, cut),
        }
        self._vectors = {"bare": self._dense(embedder, texts), "cut": self._dense(embedder, cut)}

    def rankings(self, query: str, vector: Vectors, dense: Ranking, *, k: int) -> dict[str, Ranking]:
        """Fused rankings of `k` candidates of each search; `dense` is the product's, headings in front."""
        words = {
            name: index.search(query, tenant_id=_TENANT, collection_ids=None, allowed=None, k=k)
            for name, index in self._words.items()
        }
        near = {name: index.search(vector, k=k, allowed=None) for name, index in self._vectors.items()}
        return {
            FIRST: convex_combination(dense, words[FIRST]),
            "not embedded": convex_combination(near["bare"], words[FIRST]),
            "not indexed": convex_combination(dense, words["bare"]),
            "neither": convex_combination(near["bare"], words["bare"]),
            "in no text": convex_combination(near["cut"], words["cut"]),
        }

    def close(self) -> None:
        """Let the keyword indexes go, so that their folder can."""
        for index in self._words.values():
            index.close()

    def _dense(self, embedder: Embedder, texts: Sequence[str]) -> ExactIndex:
        index = ExactIndex(embedder.info.dim)
        index.add(np.array([key for key, _ in self._chunks], dtype=np.int64), embedder.embed_documents(texts))
        return index

    def _lexical(self, folder: Path, paths: Sequence[str], texts: Sequence[str]) -> TantivyIndex:
        index = TantivyIndex.create(folder)
        index.add(
            LexicalEntry(key, _TENANT, chunk.collection_id, path, text)
            for (key, chunk), path, text in zip(self._chunks, paths, texts, strict=True)
        )
        index.commit()
        return index
