"""What ingestion must survive: kills, a full disk, a locked database, and people who change their minds (FAULTS.md)."""

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.db.contents import ContentRepository
from app.db.session import Database
from app.errors import NotFound, StoreUnavailable
from tests.app.db.samples import Library
from tests.app.jobs.bench import Bench, eventually
from tests.databases import migrated_file, sqlite_database
from tests.faults.forked import ForkedServer, KillPoint

__all__ = ["migrated_file", "sqlite_database"]

LONG = "\n\n".join(f"Paragraph {n} says that revenue rose by {n} percent in the year {1900 + n}." for n in range(60))


@pytest.fixture
def bench(sqlite_database: Database, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(Library(sqlite_database), tmp_path)
    yield bench
    bench.extractor.gate.set()
    bench.worker.stop()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "point",
    [
        KillPoint("app.db.jobs:JobRepository.runs", "call"),
        KillPoint("app.db.jobs:JobRepository.keep", "return", nth=2),
        KillPoint("app.db.jobs:JobRepository.take_keys", "return"),
        KillPoint("app.db.jobs:JobRepository.commit_all", "return"),
    ],
    ids=str,
)
def test_a2_a_killed_ingestion_goes_on_and_what_was_embedded_is_billed_once(tmp_path: Path, point: KillPoint) -> None:
    server = ForkedServer(tmp_path / "data")
    chance = random.Random(1)  # words of one letter: the small tokenizer cuts others as its training fell out
    text = "\n\n".join(" ".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=50)) for _ in range(520))
    try:
        server.start(kill_at=point)
        document = server.upload("records.txt", text)
        assert server.died(seconds=90), f"never reached: {point}"
        before = rows(server, "SELECT sum(tokens) FROM embedding_checkpoint")[0][0] or 0
        server.start()
        (settled,) = server.settled(seconds=120)

        events = rows(server, "SELECT status, input_tokens FROM usage_event ORDER BY accepted_at")
        assert (settled["id"], settled["status"]) == (document["id"], "indexed")
        assert sum(tokens for _, tokens in events) == settled["usage"]["embedding_tokens"]
        assert {status for status, _ in events} <= {"completed", "recovered"}
        if "keep" in point.function:
            assert events[0] == ("recovered", before)
            assert before > 0
        assert rows(server, "SELECT count(*) FROM embedding_checkpoint") == [(0,)]
        chunks = settled["counts"]["chunks"]
        assert rows(server, "SELECT count(*), count(DISTINCT ordinal), max(ordinal) + 1 FROM chunk") == [(chunks,) * 3]
        assert rows(server, "SELECT count(*) FROM chunk_vector") == [(chunks,)]
        assert chunks > 2 * 256, "three blocks"
    finally:
        server.close()


def rows(server: ForkedServer, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{server.data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def test_a6_a_full_disk_puts_documents_off_and_they_are_indexed_once_there_is_room(bench: Bench) -> None:
    seen = bench.upload("An older document.")
    bench.worker.start()
    bench.until(seen, "indexed")
    bench.extractor.gate.clear()
    bench.extractor.started.clear()
    document = bench.upload(LONG * 8)
    assert bench.extractor.started.wait(timeout=30)
    with bench.library.database.write() as connection:  # SQLite answers as it does for want of room on the disk
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    bench.extractor.gate.set()
    postponed = ("footnote_documents_ingested_total", {"outcome": "postponed"})  # counted even if it cannot be written
    eventually(lambda: bool(bench.metrics.registry.get_sample_value(*postponed)))

    assert bench.library.get(document.id).live_version is None
    assert ContentRepository(bench.library.database).text(seen.id, tenant_id="t1") == "An older document."
    with bench.library.database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    indexed = bench.until(document, "indexed")
    assert indexed.error_code is None
    assert sum(row.input_tokens for row in bench.bill(document)) == indexed.embedding_tokens
    bench.assert_consistent()


def test_a9_a_locked_database_delays_an_ingestion_and_nothing_is_half_written(bench: Bench, tmp_path: Path) -> None:
    bench.extractor.gate.clear()
    document = bench.upload(LONG)
    bench.worker.start()
    assert bench.extractor.started.wait(timeout=30)
    with closing(sqlite3.connect(tmp_path / "footnote.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        bench.extractor.gate.set()
        with pytest.raises(StoreUnavailable), bench.library.database.write():
            pytest.fail("it is locked")
        assert bench.library.get(document.id).status != "indexed"
        assert len(bench.chunks.visible_keys()) == 0
        other.execute("ROLLBACK")

    indexed = bench.until(document, "indexed")

    assert sum(row.input_tokens for row in bench.bill(document)) == indexed.embedding_tokens
    eventually(lambda: len(bench.index) == indexed.chunks)
    bench.assert_consistent()


def test_b1_uploads_replacements_and_deletions_at_once_end_as_the_last_of_them_says(bench: Bench) -> None:
    bench.worker.start()
    names = [f"name-{number}" for number in range(4)]

    def change(seed: int) -> None:
        chance = random.Random(seed)
        for step in range(6):
            name = chance.choice(names)
            document = bench.upload(f"{name} by {seed} at {step}. " * chance.choice([1, 40]), external_id=name)
            if chance.random() < 0.3:
                try:
                    bench.delete(document)
                except NotFound:
                    continue  # another was first

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(8)))

    left, _ = bench.library.documents.list(tenant_id="t1", limit=100)
    content = ContentRepository(bench.library.database)
    for document in left:
        settled = bench.until(document, "indexed")
        assert settled.live_version == settled.version == document.version
        assert content.text(document.id, tenant_id="t1").startswith(f"{document.external_id} by ")
    eventually(lambda: len(bench.index) == len(bench.chunks.visible_keys()))
    eventually(lambda: bench.jobs.queued() == 0)
    bench.worker.stop()
    bench.assert_consistent()


def test_b6_a_document_deleted_at_any_moment_of_its_ingestion_leaves_nothing(bench: Bench) -> None:
    bench.worker.start()

    def while_it_is_read(delete: Callable[[], None]) -> None:
        bench.extractor.gate.clear()
        bench.extractor.started.clear()

        def delete_once_begun() -> None:
            bench.extractor.started.wait(30)
            delete()
            bench.extractor.gate.set()

        threading.Thread(target=delete_once_begun).start()

    def while_it_is_embedded(delete: Callable[[], None]) -> None:
        bench.embedder.before = lambda texts: once(delete)

    def before_the_index_knows(delete: Callable[[], None]) -> None:
        bench.index.before_add = lambda: once(delete)

    done: list[Callable[[], None]] = []

    def once(delete: Callable[[], None]) -> None:
        if delete not in done:
            done.append(delete)
            delete()

    for moment in (while_it_is_read, while_it_is_embedded, before_the_index_knows):
        for text in ("One chunk.", LONG):
            deleted = threading.Event()
            ids: list[Any] = []

            def delete(ids: list[Any] = ids, deleted: threading.Event = deleted) -> None:
                eventually(lambda: bool(ids))
                bench.delete(ids[0])
                deleted.set()

            moment(delete)
            ids.append(bench.upload(f"{text} {moment.__name__}"))
            assert deleted.wait(timeout=30), moment.__name__
            bench.until(bench.upload(f"{text} after {moment.__name__}"), "indexed")

    time.sleep(0.1)
    bench.worker.stop()
    bench.assert_consistent()
    assert len(bench.library.documents.list(tenant_id="t1", limit=99)[0]) == 6
