"""Zip archives of documents: each member becomes a document of its own, or is left out for a reason."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from app.disk import is_full
from app.documents.originals import FileStore, Received, read_blocks
from app.errors import AppError, Conflict, InvalidRequest, StorageFull, TooLarge
from app.ids import new_id
from app.types import Document
from ingestion import sniff
from ingestion.archive import Member, expand
from ingestion.errors import IngestionError, Malformed, UnsupportedFormat
from ingestion.types import ExtractionLimits

_SUFFIXES = frozenset({"", ".zip"})


@dataclass(frozen=True, slots=True)
class Accepted:
    """A member that is a document now: its path in the archive, and whether there is a new version to ingest."""

    name: str
    document: Document
    created: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A member left out: its path in the archive, a stable code, and the reason in a sentence."""

    name: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What became of an archive's members, in its order."""

    accepted: tuple[Accepted, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackingLimits:
    """Caps of one archive: `members` in number, `member_bytes` of each, and what unpacking may cost in all."""

    members: int
    member_bytes: int
    extraction: ExtractionLimits = field(default_factory=ExtractionLimits)


Accept = Callable[[Received, Member], tuple[Document, bool]]
"""Makes a document of a member's bytes, as `Intake.accept` does."""


def is_archive(received: Received, *, filename: str) -> bool:
    """Whether these bytes are a zip of documents, and not a document that happens to be a zip."""
    if PurePosixPath(filename.lower().rstrip(". ")).suffix not in _SUFFIXES:
        return False  # the name claims something else: whether it lies is said where it is read
    try:
        return sniff.is_archive(received.path)
    except IngestionError:
        return False  # damaged: what is the matter is said where it is read


def unpack(
    received: Received, *, files: FileStore, limits: UnpackingLimits, password: str | None, accept: Accept
) -> Unpacked:
    """Make a document of every member that can be one. What the archive's own bytes took is given back.

    Members are accepted one by one, so a failure of the store in between leaves those before it
    accepted: sent again, the archive finds them there.

    Raises:
        Malformed, LimitExceeded, Encrypted: The archive as a whole cannot be taken; nothing was accepted.
        UnsupportedFormat: Nothing in it can be read.
        StorageFull, StoreUnavailable: As `accept`.
    """
    try:
        with files.workplace() as folder:
            members = expand(received.path, folder, limits=limits.extraction, most=limits.members, password=password)
            accepted, skipped = [], []
            for member in members:
                try:
                    document, created = accept(_received(files, member.path, limits.member_bytes), member)
                except (IngestionError, Conflict, InvalidRequest, TooLarge) as error:
                    skipped.append(Skipped(member.name, _code(error), str(error)))
                else:
                    accepted.append(Accepted(member.name, document, created))
    except Malformed as error:
        if error.__cause__ is not None and is_full(error.__cause__):  # not the archive's fault
            raise StorageFull("There is no room to unpack the archive.") from error
        raise
    finally:
        files.discard(received)
    if not accepted:
        if not skipped:
            raise UnsupportedFormat("There is no document in the archive.")
        raise UnsupportedFormat(
            f"None of the {len(skipped)} files in the archive can be taken; of the first: {skipped[0].detail}"
        )
    return Unpacked(tuple(accepted), tuple(skipped))


def _received(files: FileStore, path: Path, limit: int) -> Received:
    with path.open("rb") as file:
        received = files.receive(read_blocks(file), name=new_id("in"), limit=limit)
    path.unlink()  # its bytes are not needed twice
    return received


def _code(error: AppError | IngestionError) -> str:
    match error:
        case IngestionError():
            return error.code
        case Conflict():
            return "conflict"
        case TooLarge():
            return "too-large"
        case _:
            return "invalid-request"
