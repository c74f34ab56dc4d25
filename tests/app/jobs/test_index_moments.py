"""app.jobs and app.documents.indexes: an ingestion tells each index of its changes at every moment, in order."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.documents import chunk
from app.documents.index_ports import IndexRows
from app.documents.intake import Intake
from app.documents.passwords import Passwords
from app.errors import StoreUnavailable
from app.types import Document, Principal, Role
from retrieval.ports import Keys
from retrieval.types import Comparison
from tests.app.db.samples import Library
from tests.app.jobs.bench import Bench, HookedIndex, eventually
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]

FIRST, SECOND = "The keeper counted ships. " * 20, "The lamp was lit at dusk. " * 20


PRINCIPAL = Principal("t1", "u1", "k1", Role.ADMIN)
CLOSED = Comparison("matter", "$eq", "closed")
DELETIONS: dict[str, Callable[[Intake, Document], object]] = {
    "a document": lambda intake, its: intake.delete(its.id, principal=PRINCIPAL),
    "all that match": lambda intake, _: intake.delete_matching(CLOSED, principal=PRINCIPAL, collection_id=None),
    "a collection": lambda intake, its: intake.delete_collection(its.collection_id, principal=PRINCIPAL, force=True),
}


class Recording(HookedIndex):
    """Writes down each moment with its number of chunks, the last rows, and the chunks that others saw then."""

    fails = False

    def begin(self, database: Database) -> None:
        self.told: list[tuple[str, int]] = []
        self.seen: dict[str, int] = {}
        self.rows: dict[str, IndexRows] = {}
        self.gone: list[list[int]] = []
        self._database = database

    def stage(self, rows: Sequence[IndexRows]) -> None:
        if self.fails:
            raise StoreUnavailable("The store does not answer.")
        for each in rows:
            self._tell("stage", len(each.vectors))
            self.rows["stage"] = each

    def write_in(self, connection: sa.Connection, rows: IndexRows) -> None:
        self._tell("write_in", len(rows.keys), connection)
        self.rows["write_in"] = rows

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        self._tell("remove_in", len(keys), connection)
        self.gone.append(keys.tolist())

    def publish(self, rows: Sequence[IndexRows]) -> None:
        self._tell("publish", sum(len(each.keys) for each in rows))
        super().publish(rows)

    def forget(self, keys: Keys) -> None:
        self._tell("forget", len(keys))
        self.gone.append(keys.tolist())
        super().forget(keys)

    def _tell(self, moment: str, count: int, connection: sa.Connection | None = None) -> None:
        self.told.append((moment, count))
        counted = sa.select(sa.func.count()).select_from(chunk)
        with self._database.read() as outside:
            self.seen[moment] = outside.execute(counted).scalar_one()
        if connection is not None:
            self.seen[f"{moment}, inside"] = connection.execute(counted).scalar_one()


@pytest.fixture
def bench(sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr("tests.app.jobs.bench.HookedIndex", Recording)
    bench = Bench(Library(sqlite_database), tmp_path)
    recording(bench).begin(sqlite_database)
    bench.worker.start()
    yield bench
    bench.worker.stop()


def recording(bench: Bench) -> Recording:
    assert isinstance(bench.index, Recording)
    return bench.index


def test_rows_are_staged_before_the_commit_written_inside_it_and_published_after_it(bench: Bench) -> None:
    document = bench.until(bench.upload(FIRST), "indexed")
    index = recording(bench)
    eventually(lambda: len(index) == document.chunks)

    assert index.told == [(moment, document.chunks) for moment in ("stage", "write_in", "publish")]
    assert index.seen == {
        "stage": 0,
        "write_in": 0,
        "write_in, inside": document.chunks,
        "publish": document.chunks,
    }
    staged, written = index.rows["stage"], index.rows["write_in"]
    assert staged.keys.tolist() == written.keys.tolist() == bench.chunks.visible_keys().tolist()
    assert (written.tenant_id, written.collection_id) == ("t1", document.collection_id)
    assert (written.document_id, written.version) == (document.id, 1)
    assert len(written.texts) == len(written.vectors) == document.chunks
    assert (written.vectors == staged.vectors).all()


def test_what_a_new_version_replaces_is_removed_inside_the_commit_and_forgotten_before_it_is_published(
    bench: Bench,
) -> None:
    before = bench.until(bench.upload(FIRST, external_id="x"), "indexed").chunks
    index = recording(bench)
    eventually(lambda: len(index) == before)
    index.told.clear()

    created = bench.upload(SECOND, external_id="x")
    eventually(lambda: bench.library.get(created.id).live_version == 2)
    after = bench.library.get(created.id).chunks
    eventually(lambda: ("publish", after) in index.told)

    assert index.told == [
        ("stage", after),
        ("remove_in", before),
        ("write_in", after),
        ("forget", before),
        ("publish", after),
    ]


def test_without_its_stage_nothing_is_committed_and_the_job_is_tried_again(bench: Bench) -> None:
    index = recording(bench)
    index.fails = True
    document = bench.upload(FIRST)
    eventually(lambda: bench.library.get(document.id).next_attempt_at is not None)
    assert len(bench.chunks.visible_keys()) == 0
    assert index.told == []

    index.fails = False
    found = bench.until(document, "indexed")
    assert found.chunks == len(bench.chunks.visible_keys())


@pytest.mark.parametrize("deletion", DELETIONS)
def test_a_deletion_is_told_inside_its_transaction_and_after_it(bench: Bench, deletion: str) -> None:
    index = recording(bench)
    document = bench.until(bench.upload(FIRST, metadata={"matter": "closed"}), "indexed")
    eventually(lambda: len(index) == document.chunks)
    keys = bench.chunks.visible_keys().tolist()
    index.told.clear()
    intake = Intake(
        documents=bench.library.documents,
        collections=bench.library.collections,
        files=bench.files,
        passwords=Passwords(),
        wake=lambda: None,
        indexes=bench.indexes,
    )

    DELETIONS[deletion](intake, document)

    assert index.told == [("remove_in", document.chunks), ("forget", document.chunks)]
    assert index.gone == [keys, keys]
    assert index.seen["remove_in"] == document.chunks, "others see the chunks until the commit"
    assert index.seen["remove_in, inside"] == index.seen["forget"] == 0


def test_nothing_to_forget_is_told_to_no_index(bench: Bench, sqlite_database: Database) -> None:
    index = recording(bench)

    bench.indexes.forget(bench.chunks.visible_keys())
    with sqlite_database.write() as connection:
        bench.indexes.remove_in(connection, bench.chunks.visible_keys())

    assert index.told == []
