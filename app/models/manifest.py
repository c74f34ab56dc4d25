"""Reads and writes `footnote-model.json`, the manifest that lists and checks a fetched model's files.

The manifest is written last. A folder without one is not a model.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from app.models.catalog import PackagedModel

FILENAME = "footnote-model.json"
_FORMAT = 1
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class ProducedFile:
    """One file of the folder."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The origin and the expected content of a folder's files.

    `source_sha256` is the digest of the packaged weights; `converted_by` names the libraries that
    turned them into safetensors (empty: taken as they are). `files` is keyed by relative POSIX path.
    """

    name: str
    kind: str
    licence: str
    package: str
    version: str
    source_sha256: str
    converted_by: Mapping[str, str]
    files: Mapping[str, ProducedFile]

    @property
    def bytes(self) -> int:
        """The model's size on disk in bytes, without the manifest."""
        return sum(file.bytes for file in self.files.values())

    def describes(self, model: PackagedModel) -> bool:
        """Whether the folder was made from the current catalogue entry."""
        ours = (self.name, self.package, self.version, self.source_sha256)
        return ours == (model.name, model.package, model.version, model.weights.sha256)


def write_manifest(folder: Path, model: PackagedModel, *, converted_by: Mapping[str, str]) -> Manifest:
    """Writes the manifest of a folder that was made from a package."""
    return write_manifest_of(
        folder,
        name=model.name,
        kind=model.kind.value,
        licence=model.licence,
        package=model.package,
        version=model.version,
        source_sha256=model.weights.sha256,
        converted_by=converted_by,
    )


def write_manifest_of(
    folder: Path,
    *,
    name: str,
    kind: str,
    licence: str,
    package: str,
    version: str,
    source_sha256: str = "",
    converted_by: Mapping[str, str] | None = None,
) -> Manifest:
    """Writes the manifest of `folder` with a digest of every file; the fields are those of `Manifest`."""
    files = {
        path.relative_to(folder).as_posix(): ProducedFile(bytes=path.stat().st_size, sha256=sha256_of(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = Manifest(
        name=name,
        kind=kind,
        licence=licence,
        package=package,
        version=version,
        source_sha256=source_sha256,
        converted_by=dict(converted_by or {}),
        files=files,
    )
    (folder / FILENAME).write_text(json.dumps({"format": _FORMAT, **asdict(manifest)}, indent=2) + "\n", "utf-8")
    return manifest


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest; None when it is missing or unreadable."""
    try:
        content = json.loads((folder / FILENAME).read_text("utf-8"))
        if content.pop("format") != _FORMAT:
            return None
        files = {path: ProducedFile(**facts) for path, facts in content.pop("files").items()}
        return Manifest(files=files, **content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def is_whole(folder: Path, manifest: Manifest, *, digests: bool) -> bool:
    """Whether every file has its size and, with `digests`, its SHA-256 (about half a second for 300 MB)."""
    for path, expected in manifest.files.items():
        try:
            if (folder / path).stat().st_size != expected.bytes:
                return False
            if digests and sha256_of(folder / path) != expected.sha256:
                return False
        except OSError:
            return False
    return True


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file, read in blocks of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
