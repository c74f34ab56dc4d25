"""The rows that name original files: of versions, of unattached files, and of uploads that are not committed yet."""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.documents import document_version, unattached_file, upload
from app.errors import StoreUnavailable

_AT_ONCE = 500  # names in one statement
_BEGIN = insert_or_ignore(upload)
_begun: set[str] = set()  # originals that this process is putting: each has a row, unless it was taken over
_NAMES = document_version.c.object, unattached_file.c.object


def named(connection: sa.Connection, name: str) -> None:
    """End the upload of an original, in the transaction whose rows name it now.

    Raises:
        StoreUnavailable: Another process took this one for dead, and deletes the original: roll this transaction back.
    """
    mine = upload.c.object == name, upload.c.boot_id.is_not(None)
    if not connection.execute(sa.delete(upload).where(*mine)).rowcount and name in _begun:
        raise StoreUnavailable("The upload stood still for too long and was given up; send the file again.")


def condemn(connection: sa.Connection, names: Sequence[str], *, now: float) -> tuple[str, ...]:
    """Those of `names` that no row names any more, in the transaction that deleted rows; the caller deletes them after.

    They are noted, so that the next start deletes them if this process dies first. The rows that named them were
    locked by the caller, as a row must be that another takes the name from.
    """
    gone = _unnamed(connection, names)
    if gone:
        noted = [{"object": name, "boot_id": None, "begun_at": now} for name in gone]
        connection.execute(_BEGIN.on(connection), noted)
    return gone


class OriginalRepository:
    """The names of originals, and the uploads of one process.

    Example:
        >>> rows = OriginalRepository(database, OwnProcess.alone("boot_1"))
        >>> rows.begin("obj_1")
        >>> rows.is_open("obj_1")
        True
    """

    def __init__(self, database: Database, own: OwnProcess) -> None:
        self._database = database
        self._own = own

    def begin(self, name: str) -> None:
        """Note an original that is about to be put, durably.

        Raises:
            StorageFull, StoreUnavailable: It was not noted.
        """
        row = {"object": name, "boot_id": self._own.boot_id, "begun_at": self._own.clock()}
        with self._database.write_shortly() as connection:
            connection.execute(_BEGIN.on(connection), row)
        _begun.add(name)

    def leave(self, name: str) -> None:
        """This process puts the original no more, whatever became of it."""
        _begun.discard(name)

    def is_open(self, name: str) -> bool:
        """Whether an upload has not been committed."""
        with self._database.read() as connection:
            return connection.execute(sa.select(upload.c.object).where(upload.c.object == name)).scalar() is not None

    def end(self, names: Sequence[str]) -> None:
        """Forget uploads: their originals are named by rows, or deleted."""
        with self._database.write_shortly() as connection:
            for some in _parts(names):
                connection.execute(sa.delete(upload).where(upload.c.object.in_(some)))

    def abandoned(self) -> tuple[str, ...]:
        """The originals that processes, now gone, were putting or deleting, and those that others are deleting.

        Whoever was putting one can name it no more, should it live after all.
        """
        putting = sa.and_(upload.c.boot_id.is_not(None), self._own.gone(upload.c.boot_id))
        with self._database.read() as connection:
            left = connection.execute(sa.select(upload.c.object).where(putting).limit(1)).scalar() is not None
        if left:
            with self._database.write() as connection:
                connection.execute(sa.update(upload).where(putting).values(boot_id=None))
        with self._database.read() as connection:
            return tuple(connection.execute(sa.select(upload.c.object).where(upload.c.boot_id.is_(None))).scalars())

    def under_way(self) -> set[str]:
        """The originals that are being put now."""
        with self._database.read() as connection:
            return set(connection.execute(sa.select(upload.c.object).where(upload.c.boot_id.is_not(None))).scalars())

    def named(self) -> set[str]:
        """Every original that a version or an unattached file names."""
        with self._database.read() as connection:
            return set(connection.execute(sa.union_all(*map(sa.select, _NAMES))).scalars())

    def unnamed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of `names` that no version and no unattached file names, in order."""
        with self._database.read() as connection:
            return _unnamed(connection, names)

    def of_version(self, document_id: str, version: int) -> str | None:
        """The name of a version's original; None when there is no such version."""
        mine = document_version.c.document_id == document_id, document_version.c.version == version
        with self._database.read() as connection:
            name: str | None = connection.execute(sa.select(document_version.c.object).where(*mine)).scalar()
        return name


def _unnamed(connection: sa.Connection, names: Sequence[str]) -> tuple[str, ...]:
    found: set[str] = set()
    for some in _parts(names):
        among = sa.union_all(*(sa.select(name).where(name.in_(some)) for name in _NAMES))
        found.update(connection.execute(among).scalars())
    return tuple(name for name in dict.fromkeys(names) if name not in found)


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]
