"""`python -m tests.bench.retrieval.hybrid`: the whole search at real sizes in one go, as a table and JSON.

The product's own search over its own store and both its indexes: dense, lexical, fused, the best 20 read
from SQLite. Vectors and texts are synthetic (those of `vectors` and `lexical`), so a question's vector is
drawn beside its text; where embedding is timed, the default embedder reads the text and its vector is put
aside. All subjects are asked in turn, question by question, each with a cache of its own.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import app.db.tables.ledger  # noqa: F401 - puts the ledger's tables on the metadata
from app.db.chunks import ChunkRepository
from app.documents.adapters.faiss_vectors import FaissVectors
from app.documents.adapters.word_index import WordIndex
from app.settings import DEFAULT_EMBEDDER, load_settings
from retrieval.encoder import SentenceEncoder
from retrieval.ports import Embedder, Vectors
from retrieval.search import Search
from retrieval.types import EmbedderInfo, Scope, SearchMode
from tests.bench.machine import description
from tests.bench.retrieval.chunks import Texts
from tests.bench.retrieval.vectors import DIM, clustered, stored

TOP, CANDIDATES, WARM_UP = 20, 100, 10
EVERYTHING, FEW = Scope("t"), Scope("t", collection_ids=("small",))
console = Console()


class PairedEmbedder:
    """Implements `Embedder`: the vector drawn for a question, after another embedder has read it, if one is given."""

    info = EmbedderInfo(model="bench", revision="1", dim=DIM, max_tokens=256)

    def __init__(self, vectors: dict[str, Vectors], *, reader: Embedder | None) -> None:
        self._vectors = vectors
        self._reader = reader

    def count_tokens(self, text: str) -> int:
        """As the reader counts, else words."""
        return len(text.split()) if self._reader is None else self._reader.count_tokens(text)

    def count_query(self, text: str) -> int:
        """As the reader counts, else words."""
        return len(text.split()) if self._reader is None else self._reader.count_query(text)

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        """Documents are never embedded here."""
        raise AssertionError("the store has its vectors")

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        """Documents are never embedded here."""
        raise AssertionError("the store has its vectors")

    def embed_query(self, text: str) -> Vectors:
        """(DIM,) float32, whatever the reader made of it."""
        if self._reader is not None:
            self._reader.embed_query(text)
        return self._vectors[text]


def measured(folder: Path, *, chunks: int, questions: int, reader: Embedder | None) -> dict[str, Any]:
    """Build store and indexes, ask, and say how long everything took."""
    texts = Texts()
    rows, drawn = clustered(chunks, queries=questions + WARM_UP)
    asked = texts.questions(questions + WARM_UP)
    began = time.perf_counter()
    entries = ((entry.heading, entry.text) for entry in texts.entries(chunks))
    database = stored(folder, rows, texts=entries)
    del rows
    report: dict[str, Any] = {"store_s": round(time.perf_counter() - began, 1)}
    store = ChunkRepository(database)
    began = time.perf_counter()
    index = FaissVectors(folder / "index", embedder=PairedEmbedder.info, generation=1, chunks=store)
    report |= {"vector_index_s": round(time.perf_counter() - began, 1), "inverted_lists": index.lists}
    began = time.perf_counter()
    lexical = WordIndex(folder / "lexical", database=database, chunks=store, engine="tantivy")
    lexical.start()
    lexical.wait()
    assert lexical.serving == "tantivy", "there are no full-text tables to fall back on"
    report["lexical_index_s"] = round(time.perf_counter() - began, 1)
    console.print(report)

    vectors = dict(zip(asked, drawn, strict=True))

    def searching(
        scope: Scope, *, mode: SearchMode = SearchMode.HYBRID, reader: Embedder | None = None
    ) -> Callable[[str], int]:
        search = Search(index, lexical, store)
        embedder = PairedEmbedder(vectors, reader=reader)

        def found(question: str) -> int:
            vector = partial(embedder.embed_query, question)
            return len(search.search(question, scope=scope, top_k=TOP, vector=vector, mode=mode, candidates=CANDIDATES))

        return found

    def dense_part(question: str) -> int:
        return len(index.current().search(vectors[question], k=CANDIDATES, allowed=store.keys_in(EVERYTHING)))

    def lexical_part(question: str) -> int:
        return len(lexical.search_text(question, scope=EVERYTHING, k=CANDIDATES))

    best = list(range(1, chunks, chunks // TOP))[:TOP]
    subjects: dict[str, Callable[[str], int]] = {
        "hybrid": searching(EVERYTHING),
        "hybrid, 1 % of the chunks": searching(FEW),
        "dense alone": searching(EVERYTHING, mode=SearchMode.DENSE),
        "lexical alone": searching(EVERYTHING, mode=SearchMode.LEXICAL),
        "part: vector index": dense_part,
        "part: lexical index": lexical_part,
        "part: 20 rows": lambda _: len(store.chunks(best, scope=EVERYTHING)),
    }
    if reader is not None:
        subjects["hybrid with the question's embedding"] = searching(EVERYTHING, reader=reader)
        subjects["part: embedding"] = lambda question: len(reader.embed_query(question))
    report["search"] = _times(subjects, asked)
    report["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    lexical.close()
    index.close()
    database.close()
    return report


def _times(subjects: dict[str, Callable[[str], int]], asked: list[str]) -> dict[str, dict[str, float]]:
    """Milliseconds of each subject, in turn question by question, after a round that is not measured."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    found: dict[str, int] = dict.fromkeys(subjects, 0)
    for number, question in enumerate(asked):
        for name, subject in subjects.items():
            began = time.perf_counter()
            hits = subject(question)
            took = time.perf_counter() - began
            if number >= WARM_UP:
                times[name].append(1e3 * took)
                found[name] += hits
    return {
        name: {
            "p50_ms": round(float(np.median(each)), 2),
            "p95_ms": round(float(np.percentile(each, 95)), 2),
            "best_ms": round(min(each), 2),
            "found": round(found[name] / len(each), 1),
        }
        for name, each in times.items()
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--without-embedder", action="store_true", help="leave the embedder out")
    parser.add_argument("--folder", type=Path, help="where everything is made; a temporary folder unless given")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    reader = None
    if not options.without_embedder:
        reader = SentenceEncoder.load(str(load_settings().models_dir / DEFAULT_EMBEDDER), device="cpu")
    machine = description()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report = measured(Path(folder), chunks=options.chunks, questions=options.questions, reader=reader)
    table = Table(f"{options.chunks:,} chunks, top {TOP} of {CANDIDATES}", "p50 ms", "p95 ms", "best ms", "found")
    for name, each in report["search"].items():
        table.add_row(
            name, f"{each['p50_ms']:.2f}", f"{each['p95_ms']:.2f}", f"{each['best_ms']:.2f}", f"{each['found']:g}"
        )
    console.print(table)
    if options.out:
        sizes = {"chunks": options.chunks, "dim": DIM, "questions": options.questions}
        options.out.write_text(json.dumps({"machine": machine} | sizes | report, indent=1) + "\n")


if __name__ == "__main__":
    main()
