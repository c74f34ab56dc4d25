"""FAULTS.md A7, A8, A11 and B5: a doubtful index is never read, a schema is never half, two embedders never mix."""

import json
import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.migration import current_revision, downgrade, head_revision, upgrade
from app.db.session import Database
from app.db.tables.documents import chunk_vector
from app.db.tables.ledger import usage_event
from app.documents.adapters.faiss_vectors import FaissVectors
from app.errors import SetupError
from migrations.first_release import FIRST
from tests.app.db.samples import EMBEDDER, Library
from tests.app.server.embedder_swaps import GatedEmbedder, served, wait_until
from tests.databases import migrated_file, sqlite_database
from tests.faults.forked import exit_status_of

__all__ = ["migrated_file", "sqlite_database"]

TEXTS = [f"The keeper of tower{number} counted ships{number} in winter{number}." for number in range(12)]


@pytest.fixture
def library(sqlite_database: Database) -> Library:
    library = Library(sqlite_database)
    library.index("alpha", "beta", "gamma", filename="a.txt")
    library.index("delta", "epsilon", filename="b.txt")
    return library


def opened(library: Library, folder: Path) -> FaissVectors:
    chunks = ChunkRepository(library.database)
    return FaissVectors(folder, embedder=EMBEDDER, generation=library.generation, chunks=chunks)


def answers(index: FaissVectors) -> list[list[tuple[int, float]]]:
    """What it says to a question along each axis, over everything."""
    questions = np.eye(EMBEDDER.dim, dtype=np.float32)
    return [index.current().search(question, k=10, allowed=None) for question in questions]


def damage_file(folder: Path, how: str) -> None:
    data, manifest = folder / "index.faiss", folder / "manifest.json"
    content = data.read_bytes()
    match how:
        case "truncated":
            data.write_bytes(content[: len(content) // 2])
        case "flipped byte":
            data.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "zero length":
            data.write_bytes(b"")
        case "huge declared size":  # FAISS would allocate what the header claims
            data.write_bytes(content[:12] + (2**60).to_bytes(8, "little") + content[20:])
        case "wrong version":
            saved = json.loads(manifest.read_text())
            saved["manifest"]["format"] += 1
            manifest.write_text(json.dumps(saved))
        case "no data":
            data.unlink()


@pytest.mark.parametrize(
    "how", ["truncated", "flipped byte", "zero length", "huge declared size", "wrong version", "no data"]
)
def test_a7_a_damaged_index_is_renamed_and_rebuilt_and_answers_as_a_fresh_one(library, tmp_path, how):
    folder = tmp_path / "index"
    opened(library, folder).save_if_changed()
    damage_file(folder, how)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    rebuilt = opened(library, folder)

    (kept,) = tmp_path.glob("index.corrupt-*")
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before, "nothing of it is deleted"
    assert answers(rebuilt) == answers(opened(library, tmp_path / "fresh"))
    assert rebuilt.save_if_changed()


def test_a7_the_index_of_another_installation_or_generation_is_refused(library, tmp_path, migrated_file):
    (tmp_path / "other.db").write_bytes(migrated_file.read_bytes())
    database = Database.open(f"sqlite:///{tmp_path / 'other.db'}")
    other = Library(database)
    other.index("zeta", filename="z.txt")
    opened(other, tmp_path / "theirs").save_if_changed()
    database.close()
    folder = tmp_path / "index"
    opened(library, folder).save_if_changed()
    (tmp_path / "theirs" / "index.faiss").rename(folder / "index.faiss")
    by_data = opened(library, folder)
    by_data.save_if_changed()
    later = FaissVectors(
        tmp_path / "later",
        embedder=EMBEDDER,
        generation=library.generation + 1,
        chunks=ChunkRepository(library.database),
    )
    later.add(np.array([1]), np.ones((1, EMBEDDER.dim), np.float32))
    later.save_if_changed()
    for path in (tmp_path / "later").iterdir():
        path.replace(folder / path.name)
    by_manifest = opened(library, folder)

    fresh = answers(opened(library, tmp_path / "fresh"))
    assert answers(by_data) == answers(by_manifest) == fresh
    assert len(list(tmp_path.glob("index.corrupt-*"))) == 2


def test_a8_an_index_that_is_missing_behind_or_ahead_of_sql_is_caught_up(library, tmp_path):
    folder = tmp_path / "index"
    behind = opened(library, folder)
    behind.save_if_changed()
    library.index("zeta", "eta", filename="c.txt")
    gone = library.documents.list(tenant_id="t1", limit=10)[0][-1]
    library.documents.delete(gone.id, tenant_id="t1")
    fresh = answers(opened(library, tmp_path / "fresh"))

    caught_up = opened(library, folder)
    assert answers(caught_up) == fresh
    caught_up.add(np.array([10_000]), np.ones((1, EMBEDDER.dim), np.float32))  # committed, says the index alone
    assert caught_up.save_if_changed()
    assert answers(opened(library, folder)) == fresh
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert answers(opened(library, folder)) == fresh
    assert not list(tmp_path.glob("index.corrupt-*")), "none of them was damaged"


def _migrate_and_die(path: str, statement: int) -> None:
    """Begin the newest migrations, and end this process at the `statement`th statement of them."""
    database, left = Database.open(f"sqlite:///{path}"), statement

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with database.write() as connection:
        writer = connection.engine
    sa.event.listen(writer, "before_cursor_execute", count)
    upgrade(database)
    os._exit(3)  # there were fewer statements


@pytest.mark.parametrize("statement", [1, 5, 13])
def test_a11_a_migration_killed_half_way_leaves_the_old_schema_and_the_next_start_does_it_again(tmp_path, statement):
    path = tmp_path / "footnote.db"
    database = Database.open(f"sqlite:///{path}")
    upgrade(database, FIRST)
    library = sqlite3.connect(path)
    library.execute(
        "INSERT INTO index_generation (id, model, revision, dim, metric, status, created_at) "
        "VALUES (4, 'm', 'r', 2, 'cosine', 'active', 1.0)"
    )
    library.commit()
    library.close()
    database.close()
    assert exit_status_of(_migrate_and_die, str(path), statement) == -signal.SIGKILL

    database = Database.open(f"sqlite:///{path}")
    assert current_revision(database) == FIRST
    upgrade(database)
    assert current_revision(database) == head_revision()
    with closing(sqlite3.connect(path)) as found:
        assert found.execute("SELECT id, model, status, source FROM index_generation").fetchall() == [
            (4, "m", "active", "")
        ]
        assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert found.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()


def test_a11_an_old_program_refuses_a_new_schema_and_touches_nothing(sqlite_database):
    with sqlite_database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    for start in (upgrade, lambda database: downgrade(database, "base")):
        with pytest.raises(SetupError, match="made by a newer Footnote"):
            start(sqlite_database)
    assert current_revision(sqlite_database) == "9999"


def test_b5_no_question_ever_meets_vectors_of_another_model(tmp_path):
    old, new = GatedEmbedder(dim=64), GatedEmbedder(dim=96)
    data_dir = tmp_path / "data"
    with served(data_dir, old) as application:
        ids = application.upload(*TEXTS)
    new.gate.clear()
    with served(data_dir, new, old) as application:
        done, asked, wrong = threading.Event(), [0, 0], []

        def ask() -> None:
            number = 0
            while not done.is_set():
                number = (number + 5) % len(TEXTS)
                serving = application.serves(new)
                found = application.found(TEXTS[number])  # vectors of two lengths in one search would be a 500
                asked[serving] += 1
                if found != [ids[number]]:
                    wrong.append((number, found))

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        wait_until(lambda: asked[0] > 3)
        new.gate.set()
        application.swapped()
        wait_until(lambda: asked[1] > 3)
        done.set()
        for asker in askers:
            asker.join()

        assert not wrong
        with application.state.database.read() as connection:
            sizes = connection.execute(
                sa.select(chunk_vector.c.generation, sa.func.length(chunk_vector.c.vector)).distinct()
            ).all()
        assert sorted(map(tuple, sizes)) == [(1, 2 * 64), (2, 2 * 96)]


def _reembed_and_die(data_dir: Path, blocks: int) -> None:
    """Build the new generation, and end this process before the block after `blocks` is embedded."""
    left = blocks

    def count() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    with served(data_dir, GatedEmbedder(dim=96, before=count), GatedEmbedder(dim=64)) as application:
        application.swapped()


def test_b5_killed_while_it_embeds_anew_it_goes_on_with_the_next_block(tmp_path):
    data_dir = tmp_path / "data"
    with served(data_dir, GatedEmbedder(dim=64)) as application:
        ids = application.upload(*TEXTS)
    assert exit_status_of(_reembed_and_die, data_dir, 2) == -signal.SIGKILL

    new = GatedEmbedder(dim=96)
    with served(data_dir, new, GatedEmbedder(dim=64)) as application:
        application.swapped()
        assert [application.found(text) for text in TEXTS] == [[document_id] for document_id in ids]
        with application.state.database.read() as connection:
            open_rows = connection.execute(
                sa.select(sa.func.count()).select_from(usage_event).where(usage_event.c.status == "reserved")
            ).scalar_one()
    assert new.documents == TEXTS[8:], "two blocks of four were stored"
    assert open_rows == 0
