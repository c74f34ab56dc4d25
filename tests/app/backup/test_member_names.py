"""The names in a backup: a restore accepts every name that a backup can write, and a backup fails before any other."""

import hashlib
import os
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from app.backup.contents import NotRestorable, is_rows, original_name, original_of, rows_name
from app.db.tables.documents import unattached_file
from app.documents.ports import new_object_name
from app.ids import new_id
from tests.app.backup.backed_up import data_dir, files_of, installation, opened, saved, settings_of
from tests.backups import back_up, restore
from tests.databases import migrated_file

__all__ = ["data_dir", "installation", "migrated_file", "saved"]

ODD = st.text() | st.from_regex(r"[A-Za-z0-9_.-]{1,80}", fullmatch=True)


def keep(data_dir: Path, name: str, content: bytes) -> None:
    """Keep a file that is in no vector store; `name` names its original."""
    (data_dir / "files" / name).parent.mkdir(exist_ok=True)
    (data_dir / "files" / name).write_bytes(content)
    row = {
        "id": new_id("doc"),
        "tenant_id": "t1",
        "key_id": "key_1",
        "filename": "a.txt",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "object": name,
        "purpose": "assistants",
        "created_at": 1.5,
    }
    database = opened(data_dir)
    with database.write() as connection:
        connection.execute(sa.insert(unattached_file).values(row))
    database.close()


@pytest.mark.parametrize("name", [new_object_name(), f"{new_id('doc')}/0"], ids=["of its own", "from before"])
def test_a_file_in_no_vector_store_comes_back(data_dir, tmp_path, name):
    keep(data_dir, name, b"a file in no vector store")

    summary = back_up(settings_of(data_dir), tmp_path / "new.tar.gz")
    restore(settings_of(tmp_path / "restored"), tmp_path / "new.tar.gz")

    assert summary.originals == 3
    assert files_of(tmp_path / "restored") == files_of(data_dir)


@given(version=st.integers(0, 2**31 - 1))
def test_the_original_of_every_name_that_footnote_gives_or_gave_is_accepted(version):
    for name in (new_object_name(), f"{new_id('doc')}/{version}"):
        assert original_of(original_name(name)) == name


@given(name=ODD | st.builds("{}/{}".format, ODD, st.integers()))
def test_a_name_of_an_original_is_accepted_or_not_written(name):
    try:
        member = original_name(name)
    except NotRestorable:
        return
    assert original_of(member) == name


def test_an_original_is_never_written_over_what_is_being_received():
    assert original_of("files/incoming") is None


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
    keep(data_dir, "doc of ours/0", b"an id with spaces")

    with pytest.raises(NotRestorable, match="files/doc of ours/0"):
        back_up(settings_of(data_dir), tmp_path / "new.tar.gz")
    assert not list(tmp_path.glob("*.tar.gz")) + list(tmp_path.glob(".*.part"))


def test_a_backup_reads_its_own_file_as_a_restore_does_before_it_succeeds(data_dir, tmp_path):
    keep(data_dir, new_object_name(), os.urandom(4 << 20))  # larger than what is read at once

    def damage(label: str, done: int, total: int) -> None:
        if label.startswith("verifying"):
            for part in tmp_path.glob(".*.part"):
                os.truncate(part, 2 << 20)

    with pytest.raises(NotRestorable, match="damaged"):
        back_up(settings_of(data_dir), tmp_path / "new.tar.gz", report=damage)
    assert not list(tmp_path.glob("*.tar.gz")) + list(tmp_path.glob(".*.part"))
