"""Weights fine-tuned from a packaged model: their manifest, and the checks before they are used."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from app.errors import SetupError
from app.models.manifest import ProducedFile, read_manifest, sha256_of

AUTO, NONE = "auto", "none"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetunedManifest:
    """The manifest of fine-tuned weights: identity, base, licence and file digests.

    `base` is the name of the model they were trained from and `base_sha256` the digest of that model's packaged
    weights; `licence` is an SPDX identifier; `files` has the size and SHA-256 of the files that decide what is
    computed.
    """

    name: str
    base: str
    base_sha256: str
    licence: str
    files: Mapping[str, ProducedFile]

    @property
    def bytes(self) -> int:
        """The size of those files in bytes."""
        return sum(file.bytes for file in self.files.values())

    def fits(self, model: str) -> bool:
        """Whether the folder `model` holds the exact weights these were trained from."""
        made = read_manifest(Path(model))
        return made is not None and (made.name, made.source_sha256) == (self.base, self.base_sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetunedStatus:
    """One line of `footnote models list`; `sound` is False when a file is missing or altered."""

    name: str
    base: str
    licence: str
    folder: Path
    bytes: int
    sound: bool


M = TypeVar("M", bound=FinetunedManifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finetuning:
    """A kind of fine-tuned weights: its name in messages, its settings, and the files of its folder.

    `noun` and `base_noun` in capitals are the settings that name the two; `files` are those that decide
    what is computed, `filename` is the manifest beside them.
    """

    noun: str
    base_noun: str
    filename: str
    files: tuple[str, ...]

    @property
    def setting(self) -> str:
        """The environment variable that selects one."""
        return f"FOOTNOTE_{self.noun.upper()}"

    def read(self, folder: Path, make: Callable[..., M]) -> M | None:
        """The folder's manifest, built by `make`; None when it is missing or unreadable."""
        try:
            content = json.loads((folder / self.filename).read_text("utf-8"))
            if content.pop("format") != _FORMAT:
                return None
            files = {path: ProducedFile(**facts) for path, facts in content.pop("files").items()}
            return make(files=files, **content)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self, folder: Path, manifest: FinetunedManifest) -> None:
        """Writes the manifest next to the files it describes."""
        content: dict[str, Any] = {"format": _FORMAT, **asdict(manifest)}
        (folder / self.filename).write_text(json.dumps(content, indent=2) + "\n", "utf-8")

    def digests(self, folder: Path) -> dict[str, ProducedFile]:
        """Size and SHA-256 of the files in `folder`.

        Raises:
            OSError: One of them is missing.
        """
        return {
            path: ProducedFile(bytes=(folder / path).stat().st_size, sha256=sha256_of(folder / path))
            for path in self.files
        }

    def is_whole(self, folder: Path, manifest: FinetunedManifest) -> bool:
        """Whether the files are present and unaltered (15 ms for 20 MB)."""
        try:
            return set(manifest.files) == set(self.files) and all(
                sha256_of(folder / path) == file.sha256 for path, file in manifest.files.items()
            )
        except OSError:
            return False

    def has_files(self, folder: Path) -> bool:
        """Whether the required files exist."""
        return all((folder / path).is_file() for path in self.files)

    def sound_shipped(self, folder: Path, manifest: M | None) -> M:
        """The manifest of the shipped weights.

        Raises:
            SetupError: It cannot be read, or the files are not those it describes.
        """
        if manifest is None or not self.is_whole(folder, manifest):
            raise SetupError(
                f"The {self.noun} that comes with Footnote is damaged: "
                f"install Footnote again, or set {self.setting}=none."
            )
        return manifest

    def check_chosen(self, setting: str, folder: Path, manifest: M | None) -> None:
        """Checks the folder that `setting` names before anything in it is loaded.

        Raises:
            SetupError: There is a manifest that cannot be read, or the files are not those it describes.
        """
        if manifest is None:
            if (folder / self.filename).exists():
                raise SetupError(f"The {self.noun} {setting!r} has a {self.filename} that cannot be read.")
        elif not self.is_whole(folder, manifest):
            raise SetupError(f"The {self.noun} {setting!r} is damaged: its files are not those of its {self.filename}.")

    def absent(self, setting: str, *, needs: tuple[str, ...]) -> SetupError:
        """The error for a `setting` whose folder lacks the required files."""
        return SetupError(
            f"There is no {self.noun} {setting!r}: {self.setting} is auto, none, or a folder "
            f"with {' and '.join(needs)}."
        )

    def misfit(self, setting: str, *, base: str, model: str) -> SetupError:
        """The error for weights trained from `base` when `model` is another model."""
        return SetupError(
            f"The {self.noun} {setting!r} was trained on {base}, and the {self.base_noun} is {Path(model).name}: "
            f"set FOOTNOTE_{self.base_noun.upper()} to that model, or {self.setting} to none."
        )

    def status(self, folder: Path, manifest: FinetunedManifest) -> FinetunedStatus:
        """The status line of a folder with a manifest."""
        return FinetunedStatus(
            name=manifest.name,
            base=manifest.base,
            licence=manifest.licence,
            folder=folder,
            bytes=manifest.bytes,
            sound=self.is_whole(folder, manifest),
        )

    def unknown_status(self, folder: Path, *, base: str, sound: bool) -> FinetunedStatus:
        """The status line of a folder without a manifest; `sound` when none is needed."""
        whole = self.has_files(folder)
        return FinetunedStatus(
            name=folder.resolve().name,
            base=base,
            licence="unknown",
            folder=folder,
            bytes=sum((folder / path).stat().st_size for path in self.files) if whole else 0,
            sound=sound and whole,
        )


def folders_of(setting: str, *, shipped: Path) -> tuple[Path, ...]:
    """The shipped folder, if present, and the one that `setting` names."""
    folders = [shipped] if shipped.is_dir() else []
    if setting not in (AUTO, NONE) and Path(setting).expanduser().is_dir():
        folders.append(Path(setting).expanduser())
    return tuple(dict.fromkeys(folders))
