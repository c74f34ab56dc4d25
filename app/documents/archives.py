"""Unpacks uploaded zip archives: each member becomes a document of its own, or is skipped with a reason."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from app.disk import disk_refusal
from app.documents.spool import Spool, Spooled, read_blocks
from app.errors import AppError, Conflict, InvalidRequest, TooLarge
from app.ids import new_id
from app.types import Document
from ingestion import sniff
from ingestion.archive import Member, expand
from ingestion.errors import IngestionError, Malformed, UnsupportedFormat
from ingestion.types import ExtractionLimits

_SUFFIXES = frozenset({"", ".zip"})


@dataclass(frozen=True, slots=True)
class Accepted:
    """A member that became a document: its path in the archive, and whether a new version will be ingested."""

    name: str
    document: Document
    created: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped member: its path in the archive, a stable error code, and the reason in a sentence."""

    name: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The accepted and the skipped members of an archive, in its order."""

    accepted: tuple[Accepted, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackingLimits:
    """Limits of one archive: number of members, bytes of each, and the memory, time and bytes of unpacking."""

    members: int
    member_bytes: int
    extraction: ExtractionLimits = field(default_factory=ExtractionLimits)


Accept = Callable[[Spooled, Member], tuple[Document, bool]]
"""Creates a document from a member's bytes, as `Intake.accept` does."""


def is_archive(received: Spooled, *, filename: str) -> bool:
    """Whether these bytes are a zip of documents, and not a document that happens to be a zip."""
    if PurePosixPath(filename.lower().rstrip(". ")).suffix not in _SUFFIXES:
        return False  # another type by its name: parsing reports a name that does not fit
    try:
        return sniff.is_archive(received.path)
    except IngestionError:
        return False  # damaged: parsing reports the reason


def unpack(
    received: Spooled, *, spool: Spool, limits: UnpackingLimits, password: str | None, accept: Accept
) -> Unpacked:
    """Create a document from every member of a supported format, and delete the archive itself.

    Each member is accepted in its own transaction. When one fails for lack of storage, the members before it stay
    accepted; a second upload of the archive finds them as duplicates.

    Raises:
        Malformed, LimitExceeded, Encrypted: The archive cannot be unpacked; nothing was accepted.
        UnsupportedFormat: No member has a supported format.
        StorageFull, StoreUnavailable: As `accept`.
    """
    try:
        with spool.workplace() as folder:
            members = expand(received.path, folder, limits=limits.extraction, most=limits.members, password=password)
            accepted, skipped = [], []
            for member in members:
                try:
                    document, created = accept(_received(spool, member.path, limits.member_bytes), member)
                except (IngestionError, Conflict, InvalidRequest, TooLarge) as error:
                    skipped.append(Skipped(member.name, _code(error), str(error)))
                else:
                    accepted.append(Accepted(member.name, document, created))
    except Malformed as error:
        if error.__cause__ is not None and (refusal := disk_refusal(error.__cause__)) is not None:
            raise refusal from error  # the archive is not malformed: the disk is full or fails
        raise
    finally:
        spool.discard(received)
    if not accepted:
        if not skipped:
            raise UnsupportedFormat("There is no document in the archive.")
        raise UnsupportedFormat(
            f"None of the {len(skipped)} files in the archive can be accepted. The first one: {skipped[0].detail}"
        )
    return Unpacked(tuple(accepted), tuple(skipped))


def _received(spool: Spool, path: Path, limit: int) -> Spooled:
    with path.open("rb") as file:
        received = spool.receive(read_blocks(file), name=new_id("in"), limit=limit)
    path.unlink()  # the received copy replaces it
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
