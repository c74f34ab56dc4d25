"""Downloads a language model from the Hugging Face hub into the models' folder, checked by the digests of the hub.

Weights are taken as safetensors alone: other formats can run code when they are loaded. The folder gets its name when
everything in it has been checked, and a download that ended early goes on with the files that it lacks.
"""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from filelock import FileLock

from app.errors import SetupError
from app.models.folder import HUB_ID, added_folder
from app.models.installed import generates
from app.models.manifest import is_whole, read_manifest, sha256_of, write_manifest_of

OPEN_LICENCES = frozenset({"apache-2.0", "mit", "bsd-3-clause", "bsd-2-clause", "cc-by-4.0", "isc", "mpl-2.0"})
"""Licences that allow every use, in the hub's spelling; others have terms that have to be accepted."""

_TAKEN = frozenset({".safetensors", ".json", ".txt", ".jinja", ".model", ".md"})
_WORK = ".download-"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file of a model: its name, its bytes, and the digest by which the hub names it.

    `sha256` is that of a large file, `git_sha1` of others (of its length and content, as git names them).
    """

    name: str
    bytes: int
    sha256: str | None
    git_sha1: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HubModel:
    """A model as the hub describes it at one commit; `licence` is "unknown" where it names none."""

    id: str
    commit: str
    licence: str
    files: tuple[HubFile, ...]

    @property
    def bytes(self) -> int:
        """What is downloaded."""
        return sum(file.bytes for file in self.files)

    @property
    def has_terms(self) -> bool:
        """Whether its licence has terms that have to be accepted."""
        return self.licence not in OPEN_LICENCES


def hub_name(named: str) -> tuple[str, str]:
    """The id and the revision in `ORGANISATION/NAME` or `ORGANISATION/NAME@REVISION`; "" without a revision.

    Raises:
        SetupError: It is neither.
    """
    name, _, revision = named.partition("@")
    if not HUB_ID.fullmatch(name) or "/" not in name:
        raise SetupError(
            f"{named[:100]!r} is no model of the hub: write ORGANISATION/NAME or ORGANISATION/NAME@REVISION."
        )
    return name, revision


def look_up(named: str, *, endpoint: str | None = None) -> HubModel:
    """Ask the hub for a model, `ORGANISATION/NAME` or `ORGANISATION/NAME@REVISION`.

    Args:
        named: The model, and a branch, tag or commit.
        endpoint: The hub's address; None is the usual one, or HF_ENDPOINT.

    Raises:
        SetupError: There is no such model or revision, it may not be read, the hub cannot be reached, or the model has
            no weights that can be used.
    """
    from huggingface_hub import HfApi

    name, revision = hub_name(named)
    with _told(name):
        found = HfApi(endpoint=endpoint).model_info(name, revision=revision or None, files_metadata=True)
    files = tuple(
        HubFile(
            name=one.rfilename,
            bytes=one.size or 0,
            sha256=one.lfs.sha256 if one.lfs is not None else None,
            git_sha1=one.blob_id if one.lfs is None else None,
        )
        for one in found.siblings or ()
        if _is_taken(one.rfilename)
    )
    if not any(file.name.endswith(".safetensors") for file in files):
        raise SetupError(f"{name} has no weights as safetensors. docs/MODELS.md says what becomes of a GGUF file.")
    if not any(file.name == "tokenizer.json" for file in files):
        raise SetupError(f"{name} has no tokenizer.json, which Footnote needs.")
    licence = getattr(found.card_data, "license", None)
    return HubModel(
        id=name, commit=str(found.sha), licence=licence if isinstance(licence, str) else "unknown", files=files
    )


def download(model: HubModel, *, models_dir: Path, endpoint: str | None = None) -> Path:
    """Download a model, check it, and return its folder; one that is there at the same commit is checked alone.

    Raises:
        SetupError: The disk has no room, the hub cannot be reached, a file is not what the hub says, or the model
            generates no text. What was downloaded until then is kept for the next time, unless it is wrong.
    """
    folder = added_folder(model.id, models_dir=models_dir)
    work = work_folder(model.id, models_dir=models_dir)
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(models_dir / f".{folder.name}.lock"):
            if _is_added(model, folder):
                return folder
            room = shutil.disk_usage(models_dir).free
            if room < model.bytes:
                raise SetupError(
                    f"{model.id} takes {_gigabytes(model.bytes)}, and the disk has {_gigabytes(room)} left."
                )
            _get(model, work, names=("config.json",), endpoint=endpoint)
            if not generates(work):
                raise SetupError(f"{model.id} is no language model that generates text.")
            _get(model, work, names=tuple(file.name for file in model.files), endpoint=endpoint)
            _check(model, work)
            shutil.rmtree(work / ".cache", ignore_errors=True)  # what the hub's client remembers
            for path in work.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
            write_manifest_of(
                work, name=model.id, kind="generator", licence=model.licence, package=model.id, version=model.commit
            )
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
    except OSError as error:
        raise SetupError(
            f"The models folder cannot be written: {(error.strerror or 'unknown reason').lower()}."
        ) from error
    return folder


def work_folder(id: str, *, models_dir: Path) -> Path:  # noqa: A002 - a model's id
    """The folder that has what is downloaded of a model until all of it is checked."""
    return models_dir / f"{_WORK}{added_folder(id, models_dir=models_dir).name}"


def _is_taken(name: str) -> bool:
    path = PurePosixPath(name)
    if len(path.parts) > 1:
        return False
    kept = path.suffix in _TAKEN or path.stem.upper() in {"LICENSE", "LICENCE", "NOTICE"}
    return kept and not name.startswith("consolidated")  # the same weights in another layout


def _is_added(model: HubModel, folder: Path) -> bool:
    manifest = read_manifest(folder)
    return manifest is not None and manifest.version == model.commit and is_whole(folder, manifest, digests=True)


def _get(model: HubModel, work: Path, *, names: tuple[str, ...], endpoint: str | None) -> None:
    from huggingface_hub import snapshot_download

    with _told(model.id):
        snapshot_download(
            model.id,
            revision=model.commit,
            local_dir=work,
            allow_patterns=list(names),
            endpoint=endpoint,
            max_workers=2,
        )


def _check(model: HubModel, work: Path) -> None:
    """Compare each file with what the hub says of it; delete the first that differs."""
    for file in model.files:
        path = work / file.name
        found = sha256_of(path) if file.sha256 is not None else _git_sha1(path)
        if path.stat().st_size != file.bytes or found != (file.sha256 or file.git_sha1):
            path.unlink()
            raise SetupError(f"{file.name} of {model.id} is not what the hub says it is. It was deleted; try again.")


def _git_sha1(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn the errors of the hub's client into ours."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError:
        raise SetupError(
            f"{name} may be read by those alone who have accepted its terms: do so at the hub, and set HF_TOKEN."
        ) from None
    except errors.RevisionNotFoundError:
        raise SetupError(f"{name} has no such revision.") from None
    except errors.RepositoryNotFoundError:
        raise SetupError(f"The hub has no model {name}, or HF_TOKEN may not read it.") from None
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise _unreachable(error) from None
    except OSError:  # of the disk
        raise
    except Exception as error:  # noqa: BLE001 - the client raises what its HTTP library raises
        raise _unreachable(error) from None


def _unreachable(error: Exception) -> SetupError:
    return SetupError(f"The hub cannot be reached ({type(error).__name__}). What was downloaded is kept; try again.")


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
