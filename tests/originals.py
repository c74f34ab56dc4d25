"""Originals in a folder, for tests: put without an upload, and found as files."""

from pathlib import Path

from app.db.originals import OriginalRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from app.documents.files import DocumentFiles
from app.documents.ports import ObjectName
from app.ids import new_id
from app.server.originals import document_files
from app.settings import Settings


def files_in(data_dir: Path, database: Database, *, boot_id: str = "boot-1") -> DocumentFiles:
    """The files of an installation."""
    return document_files(
        Settings(data_dir=data_dir, _env_file=None), OriginalRepository(database, OwnProcess.alone(boot_id))
    )


def put(files: DocumentFiles, name: ObjectName, content: bytes) -> None:
    """An original, which some row is to name."""
    files.store.put(name, files.spool.receive([content], name=new_id("in"), limit=len(content)))


def path_of(files: DocumentFiles, document_id: str, version: int) -> Path:
    """The file with a version's original, which is there."""
    name = files.original_of(document_id, version)
    assert name is not None, "there is no such version"
    with files.store.local_copy(name) as path:
        return path


def held(files: DocumentFiles) -> set[ObjectName]:
    """The names of all originals."""
    assert files.listing is not None
    return files.listing.put_before(float("inf"))
