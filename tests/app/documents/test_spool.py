"""app.documents.spool: what is received is whole and durable, or not there."""

import errno
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.documents.intake import display_name
from app.documents.spool import Spool
from app.errors import StorageFull, TooLarge


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "files")


def test_what_is_received_is_what_was_sent(spool):
    received = spool.receive([b"ab", b"", b"c"], name="in_1", limit=3)

    assert (received.bytes, received.sha256) == (3, hashlib.sha256(b"abc").hexdigest())
    assert received.path.read_bytes() == b"abc"


def test_one_byte_too_many_is_refused_and_leaves_nothing(spool, tmp_path):
    with pytest.raises(TooLarge):
        spool.receive([b"abcd"], name="in_1", limit=3)

    assert list((tmp_path / "files" / "incoming").iterdir()) == []


def test_a_client_that_breaks_off_leaves_nothing(spool, tmp_path):
    def broken():
        yield b"abc"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        spool.receive(broken(), name="in_1", limit=99)

    assert list((tmp_path / "files" / "incoming").iterdir()) == []


def test_uploads_cut_off_by_a_crash_are_cleared(spool):
    spool.receive([b"abc"], name="in_1", limit=3)

    assert spool.clear() == 1
    assert spool.clear() == 0


@settings(max_examples=300)
@given(st.text(max_size=400))
def test_a_file_name_is_printable_metadata_and_never_a_path(filename):
    name = display_name(filename)

    assert 0 < len(name) <= 255
    assert name.isprintable()
    assert not {"/", "\\", "\x00"} & set(name)
    assert set(name) != {"."}


def test_a_full_disk_is_said_to_be_full_and_leaves_nothing(spool, tmp_path):
    def full():
        yield b"abc"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageFull):
        spool.receive(full(), name="in_1", limit=99)

    assert list((tmp_path / "files" / "incoming").iterdir()) == []
