"""app.documents.consistency finds every inconsistency, and repairs those where nothing can be lost."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from app.db.chunks import ChunkRepository
from app.db.originals import OriginalRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from app.documents.adapters.faiss_vectors import FaissVectors
from app.documents.consistency import Findings, Inconsistency, Reconciler, examine
from app.documents.ports import new_object_name
from app.errors import Conflict
from app.telemetry.metrics import Metrics
from tests.app.db.samples import EMBEDDER, Library
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.originals import files_in, held, path_of, put

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

VECTOR_OF_99 = "(key, generation, vector) SELECT 99, generation, vector FROM chunk_vector WHERE key = 1"
ROW_OF_2 = "(chunk_fts, rowid, text, heading) SELECT 'delete', key, text, heading FROM chunk WHERE key = 2"
LATER = 3600.0  # seconds after which a file on disk is no upload under way


class Installation:
    """Two documents with their originals, and an index."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.library = Library(database)
        self.files = files_in(folder, database)
        self.first = self.put("alpha", "beta", filename="a.txt")
        self.second = self.put("gamma", filename="b.txt")
        self.chunks = ChunkRepository(database)
        self.index = FaissVectors(
            folder / "index", embedder=EMBEDDER, generation=self.library.generation, chunks=self.chunks
        )

    def put(self, *texts: str, filename: str) -> str:
        original = new_object_name()
        put(self.files, original, "\n".join(texts).encode())
        return self.library.index(*texts, filename=filename, original=original).id

    def examine(self, *, repair: bool = False, later: float = LATER) -> dict[Inconsistency, int]:
        """What is wrong, by kind; with `repair`, what is still wrong afterwards."""
        found = self.look(repair=repair, later=later)
        return {finding.kind: finding.count for finding in (found.open if repair else found.findings)}

    def look(
        self, *, repair: bool = False, later: float = LATER, pause: Callable[[float], None] = lambda _: None
    ) -> Findings:
        return examine(
            self.database,
            self.files,
            index=self.index,
            repair=repair,
            clock=lambda: time.time() + later,
            pause=pause,
        )

    def run(self, *statements: str) -> None:
        """Statements the schema's own guards would refuse."""
        if self.database.kind == "sqlite":
            with closing(sqlite3.connect(self.folder / "footnote.db", isolation_level=None)) as other:
                for statement in statements:  # a connection of its own checks no foreign keys
                    other.execute(statement)
            return
        with self.database.write() as connection:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            for statement in statements:
                connection.exec_driver_sql(statement)


@pytest.fixture
def installation(database: Database, tmp_path: Path) -> Installation:
    return Installation(database, tmp_path)


@pytest.fixture
def on_sqlite(sqlite_database: Database, tmp_path: Path) -> Installation:
    return Installation(sqlite_database, tmp_path)


def test_nothing_is_wrong_with_a_sound_installation(installation):
    found = installation.look()

    assert found.findings == ()
    assert (found.versions, found.chunks) == (2, 3)


@pytest.mark.parametrize(
    ("statements", "kind", "mendable"),
    [
        (("UPDATE document SET status = 'embedding'",), Inconsistency.STUCK_DOCUMENTS, False),
        (("UPDATE chunk SET text = 'other' WHERE ordinal = 1",), Inconsistency.MISPLACED_CHUNKS, False),
        (("UPDATE chunk SET start_char = start_char + 1 WHERE ordinal = 1",), Inconsistency.MISPLACED_CHUNKS, False),
        (
            ("UPDATE document_version SET chunk_count = 1 WHERE chunk_count = 2",),
            Inconsistency.MISCOUNTED_VERSIONS,
            False,
        ),
        (("DELETE FROM chunk_vector WHERE key = 1",), Inconsistency.CHUNKS_WITHOUT_VECTOR, False),
        (("UPDATE chunk SET version = 9, ordinal = 9 WHERE ordinal = 1",), Inconsistency.HIDDEN_CHUNKS, True),
        ((f"INSERT INTO chunk_vector {VECTOR_OF_99}",), Inconsistency.VECTORS_WITHOUT_CHUNK, True),
    ],
)  # fmt: skip
def test_rows_that_contradict_each_other_are_found(installation, statements, kind, mendable):
    installation.run(*statements)

    assert kind in installation.examine()
    assert (kind in installation.examine(repair=True)) is not mendable
    assert (kind in installation.examine()) is not mendable, "what a repair says it mended is mended"


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO chunk_fts {ROW_OF_2}",
        "INSERT INTO chunk_trigram (rowid, text, heading) VALUES (77, 'surplus', '')",
    ],
)
def test_full_text_rows_that_do_not_match_the_chunks_are_found_and_made_anew(on_sqlite, statement):
    on_sqlite.run(statement)

    assert on_sqlite.examine() == {Inconsistency.FULL_TEXT_ROWS: 1}
    assert on_sqlite.examine(repair=True) == {}
    assert on_sqlite.examine() == {}


def test_a_missing_and_a_resized_original_are_found_and_never_touched(on_sqlite):
    path_of(on_sqlite.files, on_sqlite.first, 1).unlink()
    path_of(on_sqlite.files, on_sqlite.second, 1).write_bytes(b"other")
    path_of(on_sqlite.files, on_sqlite.second, 1).write_bytes(b"cut")
    wrong = {Inconsistency.MISSING_ORIGINALS: 1, Inconsistency.RESIZED_ORIGINALS: 1}

    assert on_sqlite.examine() == wrong
    assert on_sqlite.examine(repair=True) == wrong
    assert path_of(on_sqlite.files, on_sqlite.second, 1).read_bytes() == b"cut"


def test_a_stray_original_goes_and_an_upload_under_way_stays(on_sqlite):
    stray, coming, old = new_object_name(), new_object_name(), "doc_unknown/1"
    for name in (stray, coming, old):
        put(on_sqlite.files, name, b"bytes")
    OriginalRepository(on_sqlite.database, OwnProcess.alone("boot-1")).begin(coming)
    known = held(on_sqlite.files) - {stray, old}

    assert on_sqlite.examine(repair=True, later=0.0) == {}
    assert {stray, old} < held(on_sqlite.files), "their rows may be committed in a moment"
    assert on_sqlite.examine() == {Inconsistency.STRAY_ORIGINALS: 2}
    assert on_sqlite.examine(repair=True) == {}
    assert held(on_sqlite.files) == known
    assert on_sqlite.examine() == {}


def test_an_index_that_differs_from_sql_is_found_and_mended(on_sqlite):
    keys = on_sqlite.chunks.visible_keys()
    on_sqlite.index.forget(keys[:2])
    on_sqlite.index.add(np.array([500], dtype=np.int64), np.ones((1, EMBEDDER.dim), np.float32))

    assert on_sqlite.examine() == {Inconsistency.INDEX_MISSING: 2, Inconsistency.INDEX_SURPLUS: 1}
    assert on_sqlite.examine(repair=True) == {}
    assert on_sqlite.index.current().keys().tolist() == keys.tolist()


def test_an_index_that_is_a_moment_behind_is_not_wrong(on_sqlite):
    keys = on_sqlite.chunks.visible_keys()
    found, vectors = on_sqlite.chunks.vectors(keys.tolist(), generation=on_sqlite.library.generation)
    on_sqlite.index.forget(keys)

    looked = on_sqlite.look(pause=lambda _: on_sqlite.index.add(found, vectors))

    assert looked.findings == ()


def reconciler(installation: Installation, metrics: Metrics) -> Reconciler:
    return Reconciler(database=installation.database, files=installation.files, metrics=metrics, pause=lambda _: None)


def test_what_is_left_is_in_the_metrics_and_goes_when_it_is_mended(on_sqlite):
    metrics = Metrics()
    on_sqlite.index.forget(on_sqlite.chunks.visible_keys())

    def shown(kind: Inconsistency) -> float | None:
        return metrics.registry.get_sample_value("footnote_inconsistencies", {"kind": kind.value})

    reconciler(on_sqlite, metrics).run(on_sqlite.index, repair=False)
    assert shown(Inconsistency.INDEX_MISSING) == 3
    reconciler(on_sqlite, metrics).run(on_sqlite.index, repair=True)
    assert {kind: shown(kind) for kind in Inconsistency} == dict.fromkeys(Inconsistency, 0)
    assert metrics.registry.get_sample_value("footnote_reconciled_timestamp_seconds") != 0


def test_a_second_consistency_run_at_the_same_time_is_refused(on_sqlite):
    on_sqlite.index.forget(on_sqlite.chunks.visible_keys())
    refused: list[bool] = []

    def meanwhile(_: float) -> None:
        with pytest.raises(Conflict):
            one.run(None, repair=False)
        refused.append(True)

    one = Reconciler(database=on_sqlite.database, files=on_sqlite.files, metrics=Metrics(), pause=meanwhile)
    one.run(on_sqlite.index, repair=False)

    assert refused == [True]
