"""BLAKE2b checksums (RFC 7693) of a file's parts, so that several cores verify one file together."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PART_BYTES = 16 << 20
_DIGEST_BYTES = 32


class PartChecksums:
    """Hashes bytes as they are written, `PART_BYTES` to a part, the last one shorter."""

    def __init__(self) -> None:
        self._finished: list[str] = []
        self._part = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._room = PART_BYTES

    def update(self, data: bytes) -> None:
        """The next bytes of the file."""
        view = memoryview(data)
        while len(view) >= self._room:
            self._part.update(view[: self._room])
            self._finished.append(self._part.hexdigest())
            view = view[self._room :]
            self._part, self._room = hashlib.blake2b(digest_size=_DIGEST_BYTES), PART_BYTES
        self._part.update(view)
        self._room -= len(view)

    def hexdigests(self) -> list[str]:
        """One a part, in order; none of no bytes."""
        return [*self._finished, self._part.hexdigest()] if self._room < PART_BYTES else list(self._finished)


def checksums_of(path: Path, *, size: int) -> list[str]:
    """The checksums of the first `size` bytes at `path`, read by all cores, in little memory.

    Raises:
        OSError: The file cannot be read.
    """

    def checksum(start: int) -> str:
        data = os.pread(descriptor, min(PART_BYTES, size - start), start)
        return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()

    descriptor = os.open(path, os.O_RDONLY)
    try:
        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
            return list(pool.map(checksum, range(0, size, PART_BYTES)))
    finally:
        os.close(descriptor)
