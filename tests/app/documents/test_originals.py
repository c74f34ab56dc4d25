"""app.documents.originals: bytes are whole and durable under our names, or not there."""

import errno
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.documents.intake import display_name
from app.documents.originals import FileStore
from app.errors import StorageFull, TooLarge


@pytest.fixture
def files(tmp_path):
    return FileStore(tmp_path / "files")


def test_what_is_received_and_placed_is_what_was_sent(files):
    received = files.receive([b"ab", b"", b"c"], name="in_1", limit=3)
    files.place(received, document_id="doc_1", version=2)

    assert (received.bytes, received.sha256) == (3, hashlib.sha256(b"abc").hexdigest())
    assert files.path("doc_1", 2).read_bytes() == b"abc"
    assert files.document_versions() == {("doc_1", 2)}


def test_one_byte_too_many_is_refused_and_leaves_nothing(files, tmp_path):
    with pytest.raises(TooLarge):
        files.receive([b"abcd"], name="in_1", limit=3)

    assert list((tmp_path / "files" / "incoming").iterdir()) == []


def test_a_client_that_breaks_off_leaves_nothing(files, tmp_path):
    def broken():
        yield b"abc"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        files.receive(broken(), name="in_1", limit=99)

    assert list((tmp_path / "files" / "incoming").iterdir()) == []


def test_placing_twice_and_removing_twice_are_harmless(files):
    received = files.receive([b"abc"], name="in_1", limit=3)
    for _ in range(2):
        files.place(received, document_id="doc_1", version=1)
    for _ in range(2):
        files.remove("doc_1", 1)

    assert files.document_versions() == set()


@pytest.mark.parametrize("moment", ["made", "found"])
def test_a_folder_that_a_deletion_removes_meanwhile_is_made_again(files, monkeypatch, moment):
    make = Path.mkdir
    lost: list[Path] = []

    def mkdir(path, *arguments, **options):
        make(path, *arguments, **options)
        if path.name == "doc_1" and not lost:
            lost.append(path)
            path.rmdir()
            if moment == "found":  # what pathlib raises for a folder that is gone when it looks what it is
                raise FileExistsError(errno.EEXIST, "File exists", str(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    received = files.receive([b"abc"], name="in_1", limit=3)
    files.place(received, document_id="doc_1", version=2)

    assert lost
    assert files.path("doc_1", 2).read_bytes() == b"abc"


def test_a_file_in_the_place_of_a_folder_is_an_error_and_no_endless_trial(files):
    received = files.receive([b"abc"], name="in_1", limit=3)
    files.path("doc_1", 1).parent.write_bytes(b"")

    with pytest.raises(FileExistsError):
        files.place(received, document_id="doc_1", version=1)


def test_uploads_cut_off_by_a_crash_are_cleared(files):
    files.receive([b"abc"], name="in_1", limit=3)

    assert files.clear_incoming() == 1
    assert files.clear_incoming() == 0


@settings(max_examples=300)
@given(st.text(max_size=400))
def test_a_file_name_is_printable_metadata_and_never_a_path(filename):
    name = display_name(filename)

    assert 0 < len(name) <= 255
    assert name.isprintable()
    assert not {"/", "\\", "\x00"} & set(name)
    assert set(name) != {"."}


def test_a_full_disk_is_said_to_be_full_and_leaves_nothing(files, tmp_path):
    def full():
        yield b"abc"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageFull):
        files.receive(full(), name="in_1", limit=99)

    assert list((tmp_path / "files" / "incoming").iterdir()) == []
