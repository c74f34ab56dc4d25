"""The saved index: FAISS bytes, and a manifest that says what they must be.

SQL is the truth and this is a cache of it, so a doubtful file is refused, never repaired. Both
files are written beside their place, synced, renamed, and the folder synced; the manifest goes
last. A crash in between leaves a manifest that does not match, which `load` refuses.
"""

import hashlib
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from retrieval.errors import IndexCorrupt
from retrieval.faiss_index import FaissIndex
from retrieval.types import EmbedderInfo

DATA = "index.faiss"
MANIFEST = "manifest.json"
FORMAT = 1


def save(index: FaissIndex, folder: Path, *, embedder: EmbedderInfo, generation: int) -> None:
    """Write `index` to `folder`, durable when this returns. One saver at a time.

    Raises:
        OSError: The disk is full or refuses; what was saved before is still there, or is refused by `load`.
    """
    assert index.dim == embedder.dim, "an index holds the vectors of one embedder"
    data, count = index.snapshot()
    folder.mkdir(parents=True, exist_ok=True)
    sync_folder(folder.parent)
    write_data(folder, data)
    write_manifest(folder, manifest_of(data, count=count, embedder=embedder, generation=generation))


def load(folder: Path, *, embedder: EmbedderInfo, generation: int) -> FaissIndex:
    """The index saved in `folder`, if it is whole and belongs to this embedder and generation.

    FAISS sees the bytes only after their checksum was verified, and sees the very bytes verified.

    Raises:
        IndexCorrupt: Anything else, an absent folder included; the message says what.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise IndexCorrupt("There is no saved index, or it has no manifest.")
    expected = {"format": FORMAT, "metric": "inner_product", "embedder": asdict(embedder), "generation": generation}
    for name, value in expected.items():
        if manifest.get(name) != value:
            raise IndexCorrupt(f"The saved index has another {name}: {manifest.get(name)!r}, not {value!r}.")

    data = _read_data(folder, size=manifest["bytes"])
    if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
        raise IndexCorrupt("The saved index does not match its checksum.")
    try:
        index = FaissIndex.from_bytes(data, dim=embedder.dim)
    except ValueError as error:
        raise IndexCorrupt(f"The saved index cannot be read: {error}.") from error
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


def manifest_of(data: bytes, *, count: int, embedder: EmbedderInfo, generation: int) -> dict[str, Any]:
    """What `load` will insist on."""
    return {
        "format": FORMAT,
        "embedder": asdict(embedder),
        "metric": "inner_product",
        "generation": generation,
        "count": count,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def write_data(folder: Path, data: bytes) -> None:
    """First step of a save: the index bytes are durable under their name."""
    _replace(folder / DATA, data)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Last step of a save: from here on `load` accepts the data."""
    _replace(folder / MANIFEST, _encode(manifest))


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
    """What the index saved in `folder` says of itself, as `manifest_of` made it; `None` if none is saved.

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


def _read_data(folder: Path, *, size: int) -> bytes:
    path = folder / DATA
    try:
        actual = path.stat().st_size
        if actual != size:  # before reading: a wrong file may be larger than memory
            raise IndexCorrupt(f"The saved index has {actual} bytes, its manifest says {size}.")
        return path.read_bytes()
    except FileNotFoundError:
        raise IndexCorrupt("The saved index is missing beside its manifest.") from None
    except OSError as error:
        raise IndexCorrupt(f"The saved index cannot be read: {error.strerror}.") from error


def _replace(path: Path, data: bytes) -> None:
    """Write `data` beside `path`, sync, rename over it, sync the folder."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # a full disk gets its space back
        raise
    sync_folder(path.parent)
