"""The original files of documents: spooled, put into the store, and deleted once no row names them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from app.db.originals import OriginalRepository
from app.documents.ports import Listing, ObjectName, Originals
from app.documents.spool import Spool, Spooled, not_deleted
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger

_DATABASE_REFUSES = (StoreUnavailable, StorageFull)


class DocumentFiles:
    """A spool, a store of originals, and the rows that name what the store holds.

    An `upload` row is committed before an original is put, and goes in the transaction whose rows name the original.
    It comes back in the transaction that deletes the last of those rows, and goes once the original is deleted. So
    whenever a process dies, each original is named by a row, and the next start deletes those that only an `upload` row
    names (docs/adr/0096). The store is never used inside a transaction.

    Example:
        >>> with files.put(spooled, name=new_object_name()) as name:
        ...     documents.create(new, ...)  # with `name`
    """

    def __init__(
        self, *, spool: Spool, store: Originals, rows: OriginalRepository, listing: Listing | None = None
    ) -> None:
        """`listing` lists the store's originals; None for a store that is not listed."""
        self.spool = spool
        self.store = store
        self.listing = listing
        self._rows = rows

    def original_of(self, document_id: str, version: int) -> ObjectName | None:
        """The name of a version's original; None when there is no such version. Access is not checked."""
        return self._rows.of_version(document_id, version)

    @contextmanager
    def local_copy(self, document_id: str, version: int) -> Iterator[Path | None]:
        """A file with the original of a version, to be read until exit; None where the version or the original is gone.

        Raises:
            StorageFull, StoreUnavailable: As `Originals.local_copy`.
        """
        name = self.original_of(document_id, version)
        with ExitStack() as held:
            path = None
            if name is not None:
                with suppress(FileNotFoundError):
                    path = held.enter_context(self.store.local_copy(name))
            yield path

    @contextmanager
    def put(self, file: Spooled, *, name: ObjectName) -> Iterator[ObjectName]:
        """Store a spooled file durably, for a body that commits rows with its name.

        When no row names it at exit, because the upload was refused or another was faster, it is deleted.

        Raises:
            StorageFull, StoreUnavailable: The disk, the store or the database refuses it; no original is left.
        """
        self._rows.begin(name)
        try:
            self.store.put(name, file)
            yield name
        except BaseException:
            with suppress(*_DATABASE_REFUSES):  # whether a row names it is then not known: the next start decides
                self._sort_out([name])
            raise
        else:
            with suppress(*_DATABASE_REFUSES):
                if self._rows.is_open(name):
                    self._sort_out([name])
        finally:
            self._rows.leave(name)

    def drop(self, names: Sequence[ObjectName]) -> None:
        """Delete originals after the commit that took their last row.

        Nobody can reach them any more. So a store that refuses fails no request: the next start deletes the rest.
        """
        if not names:
            return
        try:
            self.store.delete(*names)
        except StoreUnavailable as error:
            not_deleted(error.__cause__ or error)
            return
        with suppress(*_DATABASE_REFUSES):  # the next start finds them gone
            self._rows.end(names)

    def recover(self) -> int:
        """Delete what earlier processes left: spooled files, and originals as `take_over`. Only before any upload.

        Returns the number of those originals.
        """
        self.spool.clear()
        return self.take_over()

    def take_over(self) -> int:
        """Delete the originals that only uploads name of processes that are gone; returns their number."""
        left = self._sort_out(self._rows.abandoned())
        if left:
            logger().info("originals.recovered", strays=left)
        return left

    def unnamed(self, moment: float) -> set[ObjectName]:
        """The originals put before `moment` (Unix seconds) that no row names, as far as the store is listed."""
        if self.listing is None:
            return set()
        held = self.listing.put_before(moment)  # listed before the rows are read: later originals are no strays
        return held - self._rows.under_way() - self._rows.named()

    def _sort_out(self, names: Sequence[ObjectName]) -> int:
        """Delete those of `names` that no document names, and end the uploads of all; returns the number deleted."""
        strays = self._rows.unnamed(names)
        self.drop(strays)
        if named := set(names) - set(strays):
            self._rows.end(sorted(named))
        return len(strays)
