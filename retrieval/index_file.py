"""Saves and loads vector indexes: atomic writes, a manifest, and BLAKE2b checksums (RFC 7693) of the file's parts."""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import faiss

from retrieval.errors import IndexCorrupt
from retrieval.flat_index import FlatIndex
from retrieval.inverted_index import InvertedIndex
from retrieval.ports import ExactVectors
from retrieval.types import EmbedderInfo

PART_BYTES = 16 << 20
_DIGEST_BYTES = 32


class PartChecksums:
    """Hashes bytes as they are written, `PART_BYTES` to a part, the last one shorter."""

    def __init__(self) -> None:
        self._finished: list[str] = []
        self._part = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._room = PART_BYTES

    def update(self, data: bytes) -> None:
        """Hashes the next bytes of the file."""
        view = memoryview(data)
        while len(view) >= self._room:
            self._part.update(view[: self._room])
            self._finished.append(self._part.hexdigest())
            view = view[self._room :]
            self._part, self._room = hashlib.blake2b(digest_size=_DIGEST_BYTES), PART_BYTES
        self._part.update(view)
        self._room -= len(view)

    def hexdigests(self) -> list[str]:
        """One checksum per part, in order; none without bytes."""
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


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Flat below `inverted_from` vectors, inverted lists from there on, flat again below `flat_below`.

    The two bounds differ so that a collection near them is not retrained repeatedly.
    """

    inverted_from: int = 50_000
    flat_below: int = 25_000

    def __post_init__(self) -> None:
        if not 0 < self.flat_below <= self.inverted_from:
            raise ValueError(f"flat_below must lie in 1..{self.inverted_from}, got {self.flat_below}")

    def lists(self, count: int, *, now: int | None = None) -> int:
        """How many inverted lists `count` vectors should have, 0 for a flat index.

        About four times the square root of the count, as FAISS advises ("Guidelines to choose an
        index"), as a power of two; lists that exist are kept until they are twice too many or too few.

        Args:
            count: Vectors held, or to be held.
            now: Lists of the index in use; None when there is none yet.
        """
        if count < (self.flat_below if now else self.inverted_from):
            return 0
        advised = min(4 * math.sqrt(count), count / 2)
        if now and now / 2 < advised < now * 2:
            return now
        return max(1, 1 << round(math.log2(max(1.0, advised))))


DATA = "index.faiss"
MANIFEST = "manifest.json"
FORMAT = 2
_BUFFER_BYTES = 1 << 20

FaissIndex: TypeAlias = FlatIndex | InvertedIndex


def save(index: FaissIndex, folder: Path, *, embedder: EmbedderInfo, generation: int) -> None:
    """Write `index` to `folder`, durable when this returns. One saver at a time.

    The bytes are hashed on their way to the file, so the index is never in memory twice. Writes to
    the index wait until its bytes are handed to the system, not until they are on the disk.

    Raises:
        OSError: The disk is full or refuses; the earlier save is still there, or is refused by `load`.
    """
    assert index.dim == embedder.dim, "an index holds the vectors of one embedder"
    folder.mkdir(parents=True, exist_ok=True)
    sync_folder(folder.parent)
    checksums, count, size = PartChecksums(), 0, 0
    swig: Any = faiss  # its type stubs lack the writer

    def write(file: BinaryIO) -> None:
        nonlocal count, size
        refusal: list[OSError] = []

        def take(data: bytes) -> int:
            try:
                file.write(data)
            except OSError as error:  # FAISS would make a RuntimeError of it
                refusal.append(error)
                return 0
            checksums.update(data)
            return len(data)

        try:
            count = index.write(swig.PyCallbackIOWriter(take, _BUFFER_BYTES))
        except RuntimeError:
            if refusal:
                raise refusal[0] from None
            raise
        size = file.tell()

    _replace(folder / DATA, write)
    manifest = manifest_of(checksums.hexdigests(), size=size, count=count, embedder=embedder, generation=generation)
    write_manifest(folder, manifest)


def load(folder: Path, *, embedder: EmbedderInfo, generation: int, exact: ExactVectors | None) -> FaissIndex:
    """The index saved in `folder`, if it is whole and belongs to this embedder and generation.

    FAISS reads the file only after its checksums were verified. An inverted index stays in the file,
    mapped into memory, and reads `exact` vectors for its final scores; a flat one is read into memory.

    Raises:
        IndexCorrupt: Any other defect, an absent folder included; the message names it.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise IndexCorrupt("There is no saved index, or it has no manifest.")
    expected = {
        "format": FORMAT,
        "metric": "inner_product",
        "embedder": asdict(embedder),
        "generation": generation,
        "part_bytes": PART_BYTES,
    }
    for name, value in expected.items():
        if manifest.get(name) != value:
            raise IndexCorrupt(f"The saved index has another {name}: {manifest.get(name)!r}, not {value!r}.")

    _verify(folder / DATA, size=manifest["bytes"], checksums=manifest["blake2b"])
    try:
        index = _read(folder / DATA, exact=exact)
    except ValueError as error:
        raise IndexCorrupt(f"The saved index cannot be read: {error}.") from error
    if index.dim != embedder.dim:
        raise IndexCorrupt(f"The saved index holds vectors of {index.dim} dimensions, not {embedder.dim}.")
    if len(index) != manifest["count"]:
        raise IndexCorrupt(f"The saved index holds {len(index)} vectors, its manifest says {manifest['count']}.")
    return index


def quarantine(folder: Path) -> Path | None:
    """Rename `folder` to `<name>.corrupt-<unix seconds>` for someone to look at; nothing is deleted.

    Returns:
        Where it is now, or `None` if there was none.
    """
    if not folder.exists():
        return None
    stamp = int(time.time())
    while (target := folder.with_name(f"{folder.name}.corrupt-{stamp}")).exists():
        stamp += 1
    folder.rename(target)
    sync_folder(folder.parent)
    return target


def manifest_of(
    checksums: Sequence[str], *, size: int, count: int, embedder: EmbedderInfo, generation: int
) -> dict[str, Any]:
    """The manifest that `load` requires."""
    return {
        "format": FORMAT,
        "embedder": asdict(embedder),
        "metric": "inner_product",
        "generation": generation,
        "count": count,
        "bytes": size,
        "part_bytes": PART_BYTES,
        "blake2b": list(checksums),
    }


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes the manifest, the last step of a save; then `load` accepts the data."""
    _replace(folder / MANIFEST, lambda file: file.write(_encode(manifest)))


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _encode(manifest: dict[str, Any]) -> bytes:
    """Canonical JSON with a checksum of the rest, so that a flipped byte anywhere shows."""
    body = json.dumps(manifest, sort_keys=True, indent=1)
    checksum = hashlib.sha256(body.encode()).hexdigest()
    return json.dumps({"checksum": checksum, "manifest": manifest}, sort_keys=True, indent=1).encode()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Reads the manifest of the index in `folder`; `None` if no index is saved.

    Raises:
        IndexCorrupt: The manifest is damaged or cannot be read.
    """
    try:
        raw = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IndexCorrupt(f"The manifest of the saved index cannot be read: {error.strerror}.") from error
    try:
        manifest = json.loads(raw)["manifest"]
        intact = isinstance(manifest, dict) and _encode(manifest) == raw
    except (ValueError, KeyError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise IndexCorrupt("The manifest of the saved index is damaged.")
    assert isinstance(manifest, dict)
    return manifest


def _verify(path: Path, *, size: int, checksums: list[str]) -> None:
    """Checks that the file at `path` matches the manifest.

    Raises:
        IndexCorrupt: It is not.
    """
    try:
        actual = path.stat().st_size
        if actual != size:  # before reading: a wrong file may be larger than the disk is fast
            raise IndexCorrupt(f"The saved index has {actual} bytes, its manifest says {size}.")
        if checksums_of(path, size=size) != checksums:
            raise IndexCorrupt("The saved index does not match its checksums.")
    except FileNotFoundError:
        raise IndexCorrupt("The saved index is missing beside its manifest.") from None
    except OSError as error:
        raise IndexCorrupt(f"The saved index cannot be read: {error.strerror}.") from error


def _read(path: Path, *, exact: ExactVectors | None) -> FaissIndex:
    """The FAISS index in the file.

    Raises:
        ValueError: There is none, or one of a kind that Footnote does not write.
    """
    try:
        raw: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        if isinstance(raw, faiss.IndexIVFScalarQuantizer):
            return InvertedIndex(raw, exact=exact, mapped=True)
        return FlatIndex.of(faiss.read_index(str(path)))  # small, and written to at once
    except RuntimeError as error:
        raise ValueError("the bytes hold no FAISS index") from error


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replaces the file at `path` atomically: writes a temporary file, syncs, renames, syncs the folder."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # a full disk gets its space back
        raise
    sync_folder(path.parent)
