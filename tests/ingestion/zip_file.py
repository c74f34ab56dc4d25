"""Zip containers for the tests, honest and not."""

import io
import struct
import zipfile
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
