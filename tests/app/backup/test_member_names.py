"""The names in a backup: a restore accepts every name that a backup can write, and a backup fails before any other."""

import os
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from app.backup.contents import NotRestorable, is_rows, original_name, original_of, rows_name
from app.backup.restore import restore
from app.backup.snapshot import back_up
from app.db.tables.documents import unattached_file
from app.documents.openai_files import KEPT
from app.documents.originals import FileStore
from app.ids import new_id
from tests.app.backup.backed_up import data_dir, files_of, installation, opened, saved, settings_of
from tests.databases import migrated_file

__all__ = ["data_dir", "installation", "migrated_file", "saved"]

ODD = st.text() | st.from_regex(r"[A-Za-z0-9_.-]{1,80}", fullmatch=True)


def keep(data_dir: Path, file_id: str, content: bytes) -> None:
    """Keep a file that is in no vector store."""
    files = FileStore(data_dir / "files")
    received = files.receive([content], name="in", limit=64 << 20)
    files.place(received, document_id=file_id, version=KEPT)
    row = {
        "id": file_id,
        "tenant_id": "t1",
        "key_id": "key_1",
        "filename": "a.txt",
        "bytes": received.bytes,
        "sha256": received.sha256,
        "purpose": "assistants",
        "created_at": 1.5,
    }
    database = opened(data_dir)
    with database.write() as connection:
        connection.execute(sa.insert(unattached_file).values(row))
    database.close()


def test_a_file_in_no_vector_store_comes_back(data_dir, tmp_path):
    keep(data_dir, new_id("doc"), b"a file in no vector store")

    summary = back_up(settings_of(data_dir), tmp_path / "new.tar.gz")
    restore(settings_of(tmp_path / "restored"), tmp_path / "new.tar.gz")

    assert summary.originals == 3
    assert files_of(tmp_path / "restored") == files_of(data_dir)


@given(version=st.integers(KEPT, 2**31 - 1))
def test_the_original_of_every_id_and_version_that_footnote_gives_is_accepted(version):
    document_id = new_id("doc")

    assert original_of(original_name(document_id, version)) == (document_id, version)


@given(document_id=ODD, version=st.integers())
def test_a_name_of_an_original_is_accepted_or_not_written(document_id, version):
    try:
        name = original_name(document_id, version)
    except NotRestorable:
        return
    assert original_of(name) == (document_id, version)


@given(table=ODD, number=st.integers())
def test_a_name_of_rows_is_accepted_or_not_written(table, number):
    try:
        name = rows_name(table, number)
    except NotRestorable:
        return
    assert is_rows(name)


@given(number=st.integers(1, 10**15))
def test_every_number_of_a_part_is_accepted(number):
    assert is_rows(rows_name("chunk", number))


def test_a_backup_fails_before_a_name_that_a_restore_would_refuse(data_dir, tmp_path):
    keep(data_dir, "doc of ours", b"an id with spaces")

    with pytest.raises(NotRestorable, match="files/doc of ours/0"):
        back_up(settings_of(data_dir), tmp_path / "new.tar.gz")
    assert not list(tmp_path.glob("*.tar.gz")) + list(tmp_path.glob(".*.part"))


def test_a_backup_reads_its_own_file_as_a_restore_does_before_it_succeeds(data_dir, tmp_path):
    keep(data_dir, new_id("doc"), os.urandom(4 << 20))  # larger than what is read at once

    def damage(label: str, done: int, total: int) -> None:
        if label.startswith("verifying"):
            for part in tmp_path.glob(".*.part"):
                os.truncate(part, 2 << 20)

    with pytest.raises(NotRestorable, match="damaged"):
        back_up(settings_of(data_dir), tmp_path / "new.tar.gz", report=damage)
    assert not list(tmp_path.glob("*.tar.gz")) + list(tmp_path.glob(".*.part"))
