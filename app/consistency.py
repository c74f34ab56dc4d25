"""Whether SQL and the files on disk agree. The index needs no look: it is mended from SQL at every start."""

from dataclasses import dataclass

from app.db.chunks import ChunkRepository
from app.db.documents import DocumentRepository
from app.files import FileStore
from app.state import State


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found: problems with their remedy, and a summary when there are none."""

    problems: tuple[str, ...]
    summary: str


def examine(state: State) -> Findings:
    """Compare what is recorded with what is there."""
    problems = []
    known, stored = state.documents.known_versions(), state.files.document_versions()
    missing = known - stored
    if missing:
        problems.append(
            f"the originals of {len(missing)} document versions are missing; their text stays searchable, "
            "restore them from a backup or upload them again"
        )
    chunks = len(ChunkRepository(state.database).visible_keys())
    return Findings(tuple(problems), f"{len(known)} document versions, {chunks} chunks")


def remove_strays(files: FileStore, documents: DocumentRepository) -> int:
    """Delete originals no row names: left by a crash between the file and its row, or after a deletion."""
    strays = files.document_versions() - documents.known_versions()
    for document_id, number in strays:
        files.remove(document_id, number)
    return len(strays)
