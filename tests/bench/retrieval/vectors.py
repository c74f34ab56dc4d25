"""`python -m tests.bench.retrieval.vectors`: the vector index at real sizes beside exact search, as a table and JSON.

The vectors are synthetic and clustered, as texts are: 4,096 centres of unequal size, and noise with a
falling spectrum about them. Exact scores over every vector are the oracle. Every round runs all
subjects one after the other, so a slow moment of the machine meets them all.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.db.chunks import ChunkRepository
from app.db.session import Database
from app.db.tables.documents import (
    chunk,
    chunk_vector,
    collection,
    document,
    document_version,
    index_generation,
    key_counter,
    metadata,
    tenant,
)
from app.documents.adapters.faiss_vectors import FaissVectors
from retrieval.flat_index import FlatIndex
from retrieval.key_set import KeySet
from retrieval.ports import Keys, Vectors
from retrieval.types import EmbedderInfo, Scope
from tests.bench.machine import description, median

DIM, TOP, PER_DOCUMENT = 384, 20, 10
FEW = 100  # every so many documents lie in the small collection: 1 % of the chunks
console = Console()

Rows: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float16]]


def clustered(count: int, *, queries: int, seed: int = 0) -> tuple[Rows, Vectors]:
    """`(count, DIM)` float16 unit rows and `(queries, DIM)` float32 ones from the same mixture."""
    random = np.random.default_rng(seed)
    spectrum = (1 + np.arange(DIM)) ** -0.25
    spectrum = (spectrum / np.linalg.norm(spectrum)).astype(np.float32)
    centres = _unit(random.standard_normal((4096, DIM), dtype=np.float32) * spectrum)
    weights = (1 + np.arange(len(centres))) ** -0.5
    weights /= weights.sum()

    def draw(number: int) -> Vectors:
        noise = random.standard_normal((number, DIM), dtype=np.float32) * spectrum
        return _unit(centres[random.choice(len(centres), number, p=weights)] + noise)

    rows = np.empty((count, DIM), np.float16)
    for start in range(0, count, 50_000):
        rows[start : start + 50_000] = draw(min(50_000, count - start))
    return rows, draw(queries)


def stored(folder: Path, rows: Rows, *, texts: Iterable[tuple[str, str]] = repeat(("", "x"))) -> Database:
    """A SQLite store as `filled` makes it."""
    return filled(f"sqlite:///{folder / 'bench.db'}", rows, texts=texts)


def filled(url: str, rows: Rows, *, texts: Iterable[tuple[str, str]] = repeat(("", "x"))) -> Database:
    """An empty database, filled with one tenant, ten chunks a document, and these vectors under keys 1, 2, 3, …

    `texts` has a heading and a text for each of them. There are no full-text tables.
    """
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    metadata.create_all(engine)
    count = len(rows)
    with engine.begin() as connection:
        connection.execute(sa.insert(tenant), {"id": "t", "created_at": 0})
        for name in ("large", "small"):
            row: dict[str, Any] = {"id": name, "tenant_id": "t", "name": name, "metadata": {}, "created_at": 0}
            connection.execute(sa.insert(collection), row)
        made = {"id": 1, "model": "bench", "revision": "1", "dim": DIM, "metric": "ip", "status": "active"}
        connection.execute(sa.insert(index_generation), made | {"created_at": 0})
        connection.execute(sa.insert(key_counter), {"name": "chunk", "next_key": count + 1})
    written = iter(texts)
    for start in range(0, count, 50_000):
        some = rows[start : start + 50_000]
        with engine.begin() as connection:
            _write(connection, some, list(islice(written, len(some))), first=start + 1)
    engine.dispose()
    return Database.open(url)


def _write(connection: sa.Connection, rows: Rows, texts: list[tuple[str, str]], *, first: int) -> None:
    documents = range(first, first + len(rows), PER_DOCUMENT)
    connection.execute(
        sa.insert(document),
        [
            {
                "id": f"doc_{key:012d}",
                "tenant_id": "t",
                "collection_id": "small" if key // PER_DOCUMENT % FEW == 0 else "large",
                "version": 1,
                "live_version": 1,
                "status": "indexed",
                "done": PER_DOCUMENT,
                "total": PER_DOCUMENT,
                "job_id": "j",
                "created_at": 0,
                "updated_at": 0,
                "metadata": {"year": 2000 + key % 25},
            }
            for key in documents
        ],
    )
    connection.execute(
        sa.insert(document_version),
        [
            {
                "document_id": f"doc_{key:012d}",
                "version": 1,
                "filename": "a.txt",
                "bytes": 1,
                "sha256": str(key),
                "page_count": 0,
                "first_key": key,
                "chunk_count": min(PER_DOCUMENT, first + len(rows) - key),
                "token_count": 1,
                "generation": 1,
                "embedding_tokens": 1,
                "created_at": 0,
            }
            for key in documents
        ],
    )
    connection.execute(
        sa.insert(chunk),
        [
            {
                "key": first + place,
                "document_id": f"doc_{first + place - place % PER_DOCUMENT:012d}",
                "version": 1,
                "ordinal": place % PER_DOCUMENT,
                "start_char": 0,
                "end_char": len(text),
                "token_count": 1,
                "heading_path": [heading] if heading else [],
                "heading": heading,
                "text": text,
            }
            for place, (heading, text) in enumerate(texts)
        ],
    )
    connection.execute(
        sa.insert(chunk_vector),
        [{"key": first + place, "generation": 1, "vector": row.tobytes()} for place, row in enumerate(rows)],
    )


def exact_keys(rows: Rows, queries: Vectors, allowed: Keys | None) -> list[list[int]]:
    """The 10 best keys of each query by the product with every allowed row."""
    places = np.arange(len(rows)) if allowed is None else allowed - 1
    best = np.full((len(queries), 10), -np.inf, np.float32)
    keys = np.zeros((len(queries), 10), np.int64)
    for start in range(0, len(places), 20_000):
        some = places[start : start + 20_000]
        scores = np.concatenate([best, queries @ rows[some].astype(np.float32).T], axis=1)
        names = np.concatenate([keys, np.broadcast_to(some + 1, (len(queries), len(some)))], axis=1)
        order = np.argpartition(-scores, 9, axis=1)[:, :10]
        best, keys = np.take_along_axis(scores, order, 1), np.take_along_axis(names, order, 1)
    return [row.tolist() for row in keys]


def seconds(run: Callable[[], object]) -> float:
    """How long it took."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def measured(folder: Path, *, count: int, queries: int, flat: bool) -> Iterator[tuple[str, Any]]:
    """Every figure with its name, in the order they are found."""
    rows, questions = clustered(count, queries=queries)
    chunks = ChunkRepository(stored(folder, rows))
    embedder = EmbedderInfo(model="bench", revision="1", dim=DIM, max_tokens=256)

    def opened() -> FaissVectors:
        return FaissVectors(folder / "index", embedder=embedder, generation=1, chunks=chunks)

    started = time.perf_counter()
    index = opened()
    yield "rebuild from SQL, s", time.perf_counter() - started
    yield "inverted lists", index.lists
    yield "save, s", seconds(index.save_if_changed)
    size = (folder / "index" / "index.faiss").stat().st_size
    yield "bytes / float32 flat", size / (count * DIM * 4)
    loads = [seconds(opened) for _ in range(3)]
    yield "load and compare with SQL, s (best of 3)", min(loads)
    index = opened()
    yield "first write after a load, s", seconds(lambda: index.forget(np.array([1])))

    every, small = Scope("t"), Scope("t", collection_ids=("small",))
    yield "keys of the tenant, first time, ms", 1e3 * seconds(lambda: chunks.keys_in(every))
    yield "keys of the tenant, again, ms", 1e3 * median([seconds(lambda: chunks.keys_in(every)) for _ in range(20)])
    few = chunks.keys_in(small)
    yield "share of the small collection", len(few) / count
    oracle = FlatIndex(DIM)
    if flat:
        for keys, vectors in chunks.iter_vectors(generation=1):
            oracle.add(keys, vectors)
    times: dict[str, list[float]] = {"whole index": [], "tenant": [], "1 %": [], "exact": []}
    found: dict[str, list[list[int]]] = {name: [] for name in times}
    for question in questions:

        def search(scope: Scope | None, question: Vectors = question) -> list[tuple[int, float]]:
            allowed: KeySet | None = None if scope is None else chunks.keys_in(scope)
            return index.current().search(question, k=TOP, allowed=allowed)

        subjects: dict[str, Callable[[], list[tuple[int, float]]]] = {
            "whole index": lambda: search(None),
            "tenant": lambda: search(every),
            "1 %": lambda: search(small),
        }
        if flat:
            subjects["exact"] = lambda question=question: oracle.search(question, k=TOP, allowed=None)  # type: ignore[misc]
        for name, subject in subjects.items():
            started = time.perf_counter()
            hits = subject()
            times[name].append(time.perf_counter() - started)
            found[name].append([key for key, _ in hits[:10]])
    for name, values in times.items():
        if values:
            yield f"search, {name}, p50 ms", 1e3 * median(values)
            yield f"search, {name}, best ms", 1e3 * min(values)
    rest = np.arange(2, count + 1)
    for name, allowed in (("whole index", rest), ("tenant", rest), ("1 %", few.keys)):
        right = exact_keys(rows, questions, allowed)
        shared = sum(len(set(one) & set(other)) for one, other in zip(found[name], right, strict=True))
        yield f"recall@10, {name}", shared / (10 * len(questions))


def _unit(rows: Vectors) -> Vectors:
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--flat", action="store_true", help="time exact search beside it (4 bytes a number in memory)")
    parser.add_argument("--folder", type=Path, help="where the store is made; a temporary folder unless given")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    machine = description()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, value in measured(Path(folder), count=options.vectors, queries=options.queries, flat=options.flat):
            figures[name] = round(value, 4)
            console.print(f"{name}: {figures[name]}")
    table = Table("figure", f"{options.vectors:,} × {DIM}")
    for name, value in figures.items():
        table.add_row(name, str(value))
    console.print(table)
    if options.out:
        report = {"machine": machine, "vectors": options.vectors, "dim": DIM, "figures": figures}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
