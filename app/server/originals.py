"""Names the store of originals: a folder of the data dir, another folder, or a bucket."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from app.db.originals import OriginalRepository
from app.documents.adapters.folder_originals import FolderOriginals
from app.documents.files import DocumentFiles
from app.documents.ports import Originals, new_object_name
from app.documents.spool import Spool
from app.errors import SetupError, StoreUnavailable
from app.ids import new_id
from app.settings import ServerSettings

if TYPE_CHECKING:
    from app.documents.adapters.object_originals import ObjectOriginals

_FOLDER = "files"
_TRIAL = b"Footnote tried whether originals can be kept here."


def document_files(settings: ServerSettings, rows: OriginalRepository) -> DocumentFiles:
    """The files of an installation; creates their folder in the data dir if it is missing.

    Only that folder is compared with the rows: in another place there may be what the rows of another database name.

    Raises:
        SetupError: The folder or bucket that `FOOTNOTE_ORIGINALS` names cannot be used, or the extra `s3` is missing.
    """
    spool, store = Spool(settings.data_dir / _FOLDER), stored_originals(settings)
    listing = store if isinstance(store, FolderOriginals) and not settings.originals else None
    return DocumentFiles(spool=spool, store=store, rows=rows, listing=listing)


def stored_originals(settings: ServerSettings) -> Originals:
    """The store of an installation.

    Raises:
        SetupError: As `document_files`.
    """
    if settings.bucket is not None:
        return _in_bucket(settings, settings.data_dir / _FOLDER)
    if not settings.originals:
        return FolderOriginals(settings.data_dir / _FOLDER)
    folder = Path(settings.originals)
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise SetupError("FOOTNOTE_ORIGINALS names no folder that can be read and written. Is the disk mounted?")
    return FolderOriginals(folder, apart=True)


def restored_originals(settings: ServerSettings) -> Callable[[Path], tuple[Spool, Originals]]:
    """Opens an empty spool in a folder that is restored into, and the store: in it, or where the settings have it.

    The caller flushes the disk once they are filled.
    """

    def opened(data_dir: Path) -> tuple[Spool, Originals]:
        folder = data_dir / _FOLDER
        spool = Spool(folder, sync=_later, reserved_bytes=0)
        return spool, stored_originals(settings) if settings.originals else FolderOriginals(folder, sync=_later)

    return opened


def try_originals(settings: ServerSettings) -> None:
    """Put an original into the store, read it and delete it.

    Raises:
        SetupError, StorageFull, StoreUnavailable: One of these is not possible.
    """
    store, name = stored_originals(settings), new_object_name()
    with TemporaryDirectory() as folder:
        file = Spool(Path(folder), reserved_bytes=0).receive([_TRIAL], name=new_id("in"), limit=len(_TRIAL))
        store.put(name, file)
    try:
        with store.open(name) as blocks:
            found = b"".join(blocks)
    finally:
        store.delete(name)
    if found != _TRIAL:
        raise StoreUnavailable("The store of the originals gives back other bytes than it was given.")


def _in_bucket(settings: ServerSettings, folder: Path) -> "ObjectOriginals":
    try:
        from app.documents.adapters.local_copies import LocalCopies
        from app.documents.adapters.object_originals import ObjectOriginals, bucket
    except ImportError:
        raise SetupError(
            "FOOTNOTE_ORIGINALS names a bucket, which needs the extra `s3`: pip install 'footnote-rag[s3]'."
        ) from None
    assert settings.bucket is not None, "asked before"
    name, prefix = settings.bucket
    store = bucket(name, prefix=prefix, endpoint=settings.originals_endpoint, region=settings.originals_region)
    copies = LocalCopies(folder / "incoming", most_bytes=settings.originals_cache_mb << 20)
    originals = ObjectOriginals(store, copies=copies)
    try:
        originals.require()
    except StoreUnavailable as error:
        raise SetupError(
            f"{error} FOOTNOTE_ORIGINALS names it; FOOTNOTE_ORIGINALS_ENDPOINT says where it is, and the keys are in "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        ) from error
    return originals


def _later(_: int) -> None:
    """Flushes nothing."""
