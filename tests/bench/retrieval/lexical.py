"""`python -m tests.bench.retrieval.lexical`: keyword search beside the database and inside it, as JSON.

Both hold the same chunks and get the same questions in turn. The database is SQLite, in its own file;
tenant scope is always on, as in the product. With more than one tenant, which share the collections
evenly, a word's rarity must be counted in the scope of the question: it is not that of the index.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import app.db.tables.ledger  # noqa: F401 - puts the ledger's tables on the metadata
from app.db.lexical import search_text
from app.db.migration import upgrade
from app.db.session import Database
from app.db.tables import documents as tables
from retrieval.key_set import KeySet
from retrieval.tantivy_fields import LexicalEntry
from retrieval.tantivy_index import TantivyIndex
from retrieval.types import Scope
from tests.bench.machine import description
from tests.bench.retrieval.chunks import CHUNKS_A_DOCUMENT, COLLECTIONS, TENANT, Texts

K, QUESTIONS = 50, 60  # a search for 20 hits brings 50 candidates from either side
_COLLECTION = 7  # the one that is searched alone; its tenant is the one who asks
_AT_ONCE = 10_000

_Found = list[tuple[int, float]]


def dealt(texts: Texts, count: int, tenants: int) -> Iterator[LexicalEntry]:
    """The first `count` chunks, their collections dealt to `tenants` in turn."""
    for entry in texts.entries(count):
        turn = (_collection(entry.key) - _COLLECTION) % tenants
        yield replace(entry, tenant_id=TENANT if turn == 0 else f"other{turn}")


def owned(count: int, tenants: int, *, collection: int | None = None) -> KeySet:
    """The keys of the tenant who asks, in one collection or all."""
    keys = np.arange(1, count + 1)
    numbers = (keys - 1) // CHUNKS_A_DOCUMENT % COLLECTIONS
    return KeySet(keys[(numbers - _COLLECTION) % tenants == 0 if collection is None else numbers == collection])


def _collection(key: int) -> int:
    return (key - 1) // CHUNKS_A_DOCUMENT % COLLECTIONS


def beside(texts: Texts, folder: Path, count: int, tenants: int = 1) -> tuple[TantivyIndex, dict[str, Any]]:
    """Build tantivy's index and say what that took."""
    index = TantivyIndex.create(folder)
    began = time.perf_counter()
    index.add(dealt(texts, count, tenants))
    index.commit()
    built = time.perf_counter() - began
    index.close()
    began = time.perf_counter()
    index = TantivyIndex.open(folder)
    opened = time.perf_counter() - began
    began = time.perf_counter()
    assert len(index.keys()) == count
    listed = time.perf_counter() - began
    size = sum(path.stat().st_size for path in folder.iterdir())
    return index, {
        "build_s": round(built, 1),
        "open_and_verify_s": round(opened, 2),
        "list_keys_s": round(listed, 2),
        "mb": round(size / 1e6),
    }


def inside(texts: Texts, path: Path, count: int, tenants: int = 1) -> tuple[Database, dict[str, Any]]:
    """Fill a database and say what that took; the trigram companion is filled too."""
    database = Database.open(f"sqlite:///{path}")
    upgrade(database)
    began = time.perf_counter()
    with database.write() as connection:
        names = [TENANT, *(f"other{turn}" for turn in range(1, tenants))]
        connection.execute(sa.insert(tables.tenant), [{"id": name, "created_at": 0} for name in names])
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        entries = dealt(texts, count, tenants)
        while some := list(islice(entries, _AT_ONCE)):
            _insert(connection, some)
    return database, {"build_s": round(time.perf_counter() - began, 1), "mb": round(path.stat().st_size / 1e6)}


def _insert(connection: sa.Connection, entries: list[LexicalEntry]) -> None:
    for entry in entries[::CHUNKS_A_DOCUMENT]:
        connection.exec_driver_sql(
            "INSERT OR IGNORE INTO collection (id, tenant_id, name, metadata, created_at) VALUES (?, ?, ?, '{}', 0)",
            (entry.collection_id, entry.tenant_id, entry.collection_id),
        )
        connection.exec_driver_sql(
            "INSERT INTO document (id, tenant_id, collection_id, version, live_version, status, done, total, job_id, "
            "created_at, updated_at, metadata) VALUES (?, ?, ?, 1, 1, 'indexed', 1, 1, '', 0, 0, '{}')",
            (_document(entry), entry.tenant_id, entry.collection_id),
        )
    connection.execute(
        sa.insert(tables.chunk),
        [
            {"key": each.key, "document_id": _document(each), "version": 1, "ordinal": each.key, "start_char": 0}
            | {"end_char": len(each.text), "token_count": 1, "heading_path": [each.heading]}
            | {"heading": each.heading, "text": each.text}
            for each in entries
        ],
    )


def _document(entry: LexicalEntry) -> str:
    return f"doc_{(entry.key - 1) // CHUNKS_A_DOCUMENT:08d}"


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _measure(subjects: dict[str, Callable[[str], _Found]], questions: list[str]) -> dict[str, Any]:
    """Milliseconds of each subject, in turn question by question, after one unmeasured round of the first ten."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for number, question in enumerate(questions[:10] + questions):
        for name, search in subjects.items():
            began = time.perf_counter()
            search(question)
            if number >= 10:
                times[name].append((time.perf_counter() - began) * 1e3)
    return {
        name: {"p50_ms": round(float(np.median(each)), 2), "p95_ms": round(float(np.percentile(each, 95)), 2)}
        for name, each in times.items()
    }


def main() -> None:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=1_000_000, help="chunks beside the database")
    parser.add_argument("--sql-chunks", type=int, default=50_000, help="chunks inside the database")
    parser.add_argument("--tenants", type=int, default=1, help="who share the collections; one of them asks")
    parser.add_argument("--folder", type=Path, help="an empty folder to build in; a temporary one by default")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    arguments = parser.parse_args()
    texts = Texts()
    questions = texts.questions(QUESTIONS)
    result: dict[str, Any] = {"machine": description(), "k": K, "questions": QUESTIONS, "tenants": arguments.tenants}
    with _folder(arguments.folder) as folder:
        index, result["tantivy"] = beside(texts, folder / "lexical", arguments.chunks, arguments.tenants)
        every_second = KeySet(np.arange(1, arguments.chunks + 1, 2))
        few = KeySet(np.arange(1, arguments.chunks + 1, 100)[:4000])

        def ask(**scope: Any) -> Callable[[str], _Found]:
            restricted = {"collection_ids": None, "allowed": None} | scope
            return lambda question: index.search(question, tenant_id=TENANT, k=K, **restricted)

        subjects = {
            "tenant": ask(),
            "one collection of a hundred": ask(collection_ids=(f"col_{_COLLECTION}",)),
            "half of the chunks by key": ask(allowed=every_second),
            "4,000 chunks by key": ask(allowed=few),
        }
        result["tantivy"] |= {"chunks": arguments.chunks, "search": _measure(subjects, questions)}
        result["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        print(json.dumps(result["tantivy"]), flush=True)
        if arguments.sql_chunks:
            database, result["sqlite"] = inside(texts, folder / "footnote.db", arguments.sql_chunks, arguments.tenants)
            mine, one_of_them = (
                owned(arguments.sql_chunks, arguments.tenants, collection=each) for each in (None, _COLLECTION)
            )  # which the product remembers
            with database.read() as connection:
                everything, one = Scope(TENANT), Scope(TENANT, collection_ids=(f"col_{_COLLECTION}",))
                in_database: dict[str, Callable[[str], _Found]] = {
                    "tenant": lambda question: search_text(connection, question, scope=everything, k=K, keys=mine),
                    "one collection of a hundred": lambda question: search_text(
                        connection, question, scope=one, k=K, keys=one_of_them
                    ),
                }
                result["sqlite"] |= {
                    "chunks": arguments.sql_chunks,
                    "search": _measure(in_database, questions),
                }
            database.close()
        index.close()
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
