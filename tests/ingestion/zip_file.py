"""Zip containers for the tests, honest and not."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping


def zip_bytes(members: Mapping[str, str | bytes]) -> bytes:
    """A zip of `members` in their order; `mimetype` is stored, as EPUB wants it, the rest deflated."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return out.getvalue()


def with_declared_sizes(data: bytes, size: int) -> bytes:
    """`data` with every uncompressed size in headers and directory replaced by `size`."""
    lying = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = lying.find(signature)
        while at >= 0:
            struct.pack_into("<L", lying, at + offset, size)
            at = lying.find(signature, at + 4)
    return bytes(lying)


OOXML_TYPES = '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


def ooxml_bytes(folder: str, extra: Mapping[str, str | bytes] | None = None) -> bytes:
    """A container that looks like an Office document of the kind `folder` ("word", "ppt", "xl")."""
    return zip_bytes({"[Content_Types].xml": OOXML_TYPES, f"{folder}/document.xml": "<x/>", **(extra or {})})


def encrypted_zip_bytes(members: Mapping[str, bytes], *, password: str) -> bytes:
    """A zip of stored members under the traditional encryption (PKWARE APPNOTE §6.1), which `zipfile` only undoes."""
    plain = zip_bytes(members)
    out = bytearray()
    directory = bytearray()
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        for name, content in members.items():
            crc = archive.getinfo(name).CRC
            sealed = _seal(bytes(11) + bytes([crc >> 24]) + content, password.encode())
            raw = name.encode()
            fields = struct.pack("<HHHHLLLHH", 1, 0, 0, 33, crc, len(sealed), len(content), len(raw), 0)
            directory += b"PK\x01\x02" + struct.pack("<H", 20) + struct.pack("<H", 20) + fields[:2]
            directory += fields[2:] + struct.pack("<HHHLL", 0, 0, 0, 0, len(out)) + raw
            out += b"PK\x03\x04" + struct.pack("<H", 20) + fields + raw + sealed
    end = struct.pack("<HHHHLLH", 0, 0, len(members), len(members), len(directory), len(out), 0)
    return bytes(out + directory + b"PK\x05\x06" + end)


def _seal(data: bytes, password: bytes) -> bytes:
    keys = [0x12345678, 0x23456789, 0x34567890]

    def crc32(byte: int, crc: int) -> int:
        return zlib.crc32(bytes([byte]), crc ^ 0xFFFFFFFF) ^ 0xFFFFFFFF

    def update(byte: int) -> None:
        keys[0] = crc32(byte, keys[0])
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = crc32(keys[1] >> 24, keys[2])

    for byte in password:
        update(byte)
    sealed = bytearray()
    for byte in data:
        key = (keys[2] | 2) & 0xFFFF
        sealed.append(byte ^ (((key * (key ^ 1)) >> 8) & 0xFF))
        update(byte)
    return bytes(sealed)
