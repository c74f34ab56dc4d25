"""Names the store of originals: a folder of the data dir."""

from pathlib import Path

from app.db.originals import OriginalRepository
from app.documents.adapters.folder_originals import FolderOriginals
from app.documents.files import DocumentFiles
from app.documents.ports import Originals
from app.documents.spool import Spool

_FOLDER = "files"


def document_files(data_dir: Path, rows: OriginalRepository) -> DocumentFiles:
    """The files of an installation; creates their folder if it is missing."""
    folder = data_dir / _FOLDER
    spool, store = Spool(folder), FolderOriginals(folder)
    return DocumentFiles(spool=spool, store=store, rows=rows, listing=store)


def stored_originals(data_dir: Path) -> Originals:
    """The store of an installation, to be read: for a backup."""
    return FolderOriginals(data_dir / _FOLDER)


def restored_originals(data_dir: Path) -> tuple[Spool, Originals]:
    """An empty spool and store in a folder that is restored into; the caller flushes the disk once they are filled."""
    folder = data_dir / _FOLDER
    return Spool(folder, sync=_later, reserved_bytes=0), FolderOriginals(folder, sync=_later)


def _later(_: int) -> None:
    """Flushes nothing."""
