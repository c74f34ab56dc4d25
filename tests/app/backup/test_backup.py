"""app.backup: a backup restores the same data, verified, or changes nothing."""

import os
import tarfile
from typing import Any

import pytest
import sqlalchemy as sa

from app.backup import data_dir as placement
from app.backup.archive import read_archive
from app.backup.contents import MANIFEST, BackupManifest, is_rows, rows_name
from app.db.chunks import ChunkRepository
from app.db.consistency import ConsistencyRepository
from app.db.migration import current_revision, head_revision, upgrade
from app.db.portable import RowLoader, count_rows, dump_rows
from app.db.session import Database
from app.db.tables import metadata
from app.db.tables.documents import document_version
from app.errors import Conflict, SetupError
from retrieval.types import Scope
from tests.app.backup.backed_up import data_dir, files_of, installation, opened, saved, settings_of
from tests.app.db.samples import Library
from tests.backups import back_up, restore
from tests.databases import migrated_file
from tests.postgres import empty_postgres, migrated_postgres

__all__ = ["data_dir", "installation", "migrated_file", "saved"]


def rows_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.read() as connection:
        return {
            name: sorted((tuple(row) for row in connection.execute(sa.select(table))), key=repr)
            for name, table in metadata.tables.items()
        }


def test_a_restored_installation_has_the_same_rows_originals_and_words(data_dir, saved, tmp_path):
    restored = restore(settings_of(tmp_path / "new"), saved)

    before, after = opened(data_dir), opened(tmp_path / "new")
    assert rows_of(after) == rows_of(before)
    assert files_of(tmp_path / "new") == files_of(data_dir)
    assert current_revision(after) == head_revision() == restored.manifest.schema
    assert restored.summary.originals == 2
    assert restored.aside is None
    everything = Scope(tenant_id="t1")
    found = [
        ChunkRepository(database).search_text("who counted ships", scope=everything, k=9)
        for database in (before, after)
    ]
    assert found[0] == found[1] != []
    before.close()
    after.close()


def test_rows_move_between_the_two_kinds_of_database_and_back(data_dir, tmp_path):
    original = opened(data_dir)
    with migrated_postgres() as postgres:
        with original.read() as source, postgres.write() as target:
            loader = RowLoader(target)
            moved = sum(loader.load(part) for _, _, part in dump_rows(source))
            loader.finish()
        assert rows_of(postgres) == rows_of(original)
        with original.read() as connection:
            assert moved == sum(count_rows(connection).values())

        Library(postgres).index("the next key is free", content="more")  # sequences and counters go on
        back = Database.open(f"sqlite:///{tmp_path / 'back.db'}")
        upgrade(back)
        with postgres.read() as source, back.write() as target:
            loader = RowLoader(target)
            for _, _, part in dump_rows(source):
                loader.load(part)
        assert rows_of(back) == rows_of(postgres)
        back.close()
    original.close()


def test_a_backup_of_sqlite_restores_into_an_empty_postgresql_and_not_twice(data_dir, saved, tmp_path):
    with empty_postgres() as url:
        restore(settings_of(tmp_path / "new", database_url=url), saved)

        before, after = opened(data_dir), Database.open(url)
        assert rows_of(after) == rows_of(before)
        assert ConsistencyRepository(after).full_text_rows() == 0
        after.close()
        before.close()
        assert not (tmp_path / "new" / "footnote.db").exists()
        with pytest.raises(Conflict, match="not empty"):
            restore(settings_of(tmp_path / "other", database_url=url), saved)
    assert not placement.is_used(tmp_path / "other")


def test_a_file_that_is_there_is_kept_unless_forced(data_dir, tmp_path):
    target = tmp_path / "saved.tar.gz"
    target.write_bytes(b"something else")

    with pytest.raises(Conflict):
        back_up(settings_of(data_dir), target)
    assert target.read_bytes() == b"something else"
    back_up(settings_of(data_dir), target, force=True)
    assert next(read_archive(target)).name == MANIFEST
    assert target.stat().st_mode & 0o077 == 0, "it holds what only its owner may read"


def test_a_backup_that_is_broken_off_leaves_the_old_file_and_nothing_else(data_dir, tmp_path):
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "saved.tar.gz"
    target.write_bytes(b"the one before")

    def broken(what: str, done: int, total: int) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        back_up(settings_of(data_dir), target, force=True, report=broken)
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert target.read_bytes() == b"the one before"


def test_an_original_that_is_gone_or_altered_is_named_and_the_rest_is_saved(data_dir, tmp_path):
    database = opened(data_dir)
    with database.read() as connection:
        names = connection.execute(sa.select(document_version.c.document_id, document_version.c.object)).all()
    database.close()
    (lost, its_original), (altered, another) = names
    (data_dir / "files" / its_original).unlink()
    (data_dir / "files" / another).write_bytes(b"bit rot")

    summary = back_up(settings_of(data_dir), tmp_path / "saved.tar.gz")

    assert summary.missing == (f"{lost}/1",)
    assert summary.altered == (f"{altered}/1",)
    assert restore(settings_of(tmp_path / "new"), tmp_path / "saved.tar.gz").summary == summary
    assert list(files_of(tmp_path / "new").values()) == [b"bit rot"]


def test_there_is_nothing_to_back_up_and_no_database_is_made(tmp_path):
    with pytest.raises(SetupError, match="nothing to back up"):
        back_up(settings_of(tmp_path / "empty"), tmp_path / "saved.tar.gz")
    assert not (tmp_path / "empty").exists()


def test_an_older_schema_comes_back_as_it_was_and_is_migrated_at_the_next_start(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    database = opened(old)
    upgrade(database, "0026")
    with database.write() as connection:
        connection.exec_driver_sql("INSERT INTO weekly_summary VALUES ('t1', 7, 'delivered', 3, 9, 9)")
    database.close()
    back_up(settings_of(old), tmp_path / "saved.tar.gz")

    restore(settings_of(tmp_path / "new"), tmp_path / "saved.tar.gz")

    database = opened(tmp_path / "new")
    assert current_revision(database) == "0026"
    upgrade(database)
    # a channel since 0035, and a process that delivers it since 0040
    assert rows_of(database)["weekly_summary"] == [("t1", 7, "webhook", "delivered", 3, 9, 9, None)]
    database.close()


def test_the_file_can_be_verified_without_footnote(saved, tmp_path):
    safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
    with tarfile.open(saved) as archive:
        archive.extractall(tmp_path / "out", **safely)
    sums = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()

    assert len(sums) == len([path for path in (tmp_path / "out").rglob("*") if path.is_file()]) - 1
    assert os.system(f"cd {tmp_path / 'out'} && sha256sum --quiet -c SHA256SUMS") == 0


def test_the_manifest_says_what_matters_and_no_secret(saved):
    members = {member.name: member.content.read() for member in read_archive(saved)}
    manifest = BackupManifest.decode(members[MANIFEST])

    assert manifest.schema == head_revision()
    assert manifest.settings["embedder"] == "all-MiniLM-L6-v2"
    assert not [name for name in manifest.settings if "key" in name or "url" in name]


def test_every_table_has_a_name_that_a_backup_knows_again() -> None:
    assert [name for name in metadata.tables if not is_rows(rows_name(name, 1))] == []
