"""ingestion.container checks zip members by their real contents, not by their declared sizes."""

from pathlib import Path

import pytest

from ingestion.container import MAX_MEMBERS, check_members, opened
from ingestion.errors import Encrypted, LimitExceeded, Malformed
from tests.ingestion.zip_file import ooxml_bytes, with_declared_sizes, zip_bytes

MIB = 1 << 20


def stored(folder: Path, data: bytes) -> Path:
    path = folder / "upload"
    path.write_bytes(data)
    return path


def test_a_well_formed_container_passes_the_checks(tmp_path: Path) -> None:
    path = stored(tmp_path, ooxml_bytes("word"))

    check_members(path, expanded_bytes=MIB)

    with opened(path) as archive:
        assert archive.namelist() == ["[Content_Types].xml", "word/document.xml"]


def test_a_zip_bomb_is_refused_by_what_comes_out_of_it(tmp_path: Path) -> None:
    path = stored(tmp_path, ooxml_bytes("word", {"word/media/big.bin": bytes(8 * MIB)}))

    assert path.stat().st_size < MIB // 32
    with pytest.raises(LimitExceeded, match="expands to more than 4 MiB"):
        check_members(path, expanded_bytes=4 * MIB)


@pytest.mark.parametrize("size", [1, 0, 9 * MIB])
def test_a_declared_size_that_lies_is_found_out(tmp_path: Path, size: int) -> None:
    bomb = zip_bytes({"word/document.xml": b"<x>" + b" " * 8 * MIB + b"</x>"})
    path = stored(tmp_path, with_declared_sizes(bomb, size))

    with pytest.raises((LimitExceeded, Malformed)):
        check_members(path, expanded_bytes=4 * MIB)


def test_a_nested_zip_is_bytes_like_any_other(tmp_path: Path) -> None:
    bomb = zip_bytes({"zeros": bytes(8 * MIB)})

    check_members(stored(tmp_path, zip_bytes({"inner.zip": bomb})), expanded_bytes=MIB)


def test_too_many_members_are_refused_before_they_are_looked_at(tmp_path: Path) -> None:
    path = stored(tmp_path, zip_bytes({f"{n}": b"" for n in range(MAX_MEMBERS + 1)}))

    with pytest.raises(LimitExceeded, match="10,000 files"):
        check_members(path, expanded_bytes=MIB)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_that_declares_entities_is_refused(tmp_path: Path, encoding: str) -> None:
    laughs = '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><lolz>&lol2;</lolz>'
    path = stored(tmp_path, ooxml_bytes("word", {"word/footer1.xml": laughs.encode(encoding)}))

    with pytest.raises(Malformed, match="XML entities"):
        check_members(path, expanded_bytes=MIB)


def test_an_entity_that_straddles_two_reads_is_seen(tmp_path: Path) -> None:
    xml = b" " * (MIB - 4) + b"<!ENTITY x 'y'>"
    path = stored(tmp_path, ooxml_bytes("word", {"word/footer1.xml": xml}))

    with pytest.raises(Malformed, match="XML entities"):
        check_members(path, expanded_bytes=4 * MIB)


def test_an_encrypted_member_is_said_to_be_so(tmp_path: Path) -> None:
    data = bytearray(zip_bytes({"word/document.xml": b"<x/>"}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + offset] |= 0x1

    with pytest.raises(Encrypted, match="password"):
        check_members(stored(tmp_path, bytes(data)), expanded_bytes=MIB)


@pytest.mark.parametrize("data", [b"PK\x03\x04", b"PK\x05\x06", b"PK\x03\x04" + bytes(100), b""])
def test_what_is_no_zip_is_malformed(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(Malformed, match="damaged"):
        check_members(stored(tmp_path, data), expanded_bytes=MIB)


def test_a_name_that_is_not_the_utf_8_it_claims_is_malformed(tmp_path: Path) -> None:
    data = zip_bytes({"ü": b"x"}).replace("ü".encode(), b"\xc3\x00")

    with pytest.raises(Malformed, match="damaged"):
        check_members(stored(tmp_path, data), expanded_bytes=MIB)


def test_a_container_cut_short_is_malformed(tmp_path: Path) -> None:
    whole = ooxml_bytes("word", {"word/media/image": bytes(range(256)) * 400})

    for end in range(0, len(whole), 97):
        with pytest.raises(Malformed):
            check_members(stored(tmp_path, whole[:end]), expanded_bytes=MIB)
