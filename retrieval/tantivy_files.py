"""The files of a tantivy index, and whether each is what was written."""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from retrieval.errors import IndexCorrupt

_FOOTER_MAGIC = 1337
_READ_BYTES = 1 << 20


def verify(folder: Path) -> None:
    """Check every file of the last commit against the checksum it ends in.

    Raises:
        IndexCorrupt: A file is missing, cut off or changed.
        OSError, ValueError, KeyError, TypeError: A file cannot be read or says nothing sensible.
    """
    for file in _segment_files(folder):
        _verify(file)


def _segment_files(folder: Path) -> Iterator[Path]:
    segments = json.loads((folder / "meta.json").read_bytes())["segments"]
    known = [segment["segment_id"].replace("-", "") for segment in segments]
    for name in known:
        files = list(folder.glob(f"{name}.*"))
        if not files:
            raise IndexCorrupt("A part of the keyword index is missing.")
        yield from files


def _verify(path: Path) -> None:
    """Check one file against the checksum it ends in: body, JSON with its CRC-32, JSON's length, a magic number."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length, magic = int.from_bytes(tail[:4], "little"), int.from_bytes(tail[4:], "little")
        if len(tail) < 8 or magic != _FOOTER_MAGIC or length + 8 > size:
            raise IndexCorrupt("A file of the keyword index is cut off.")
        file.seek(size - 8 - length)
        expected = json.loads(file.read(length))["crc"]
        file.seek(0)
        left, crc = size - 8 - length, 0
        while left:
            data = file.read(min(left, _READ_BYTES))
            if not data:
                raise IndexCorrupt("A file of the keyword index is cut off.")
            crc, left = zlib.crc32(data, crc), left - len(data)
    if crc != expected:
        raise IndexCorrupt("A file of the keyword index does not match its checksum.")
