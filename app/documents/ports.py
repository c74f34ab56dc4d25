"""The ports of documents: what a store of original files must do (docs/adr/0096)."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

from app.documents.spool import Spooled
from app.ids import new_id

ObjectName: TypeAlias = str
"""The name of an original in its store. A row gives it; a user's file name never becomes one."""

_NAME = re.compile(r"obj_[0-9a-z]{26}|[A-Za-z0-9_-]{1,64}/(0|[1-9][0-9]{0,9})")  # the second: from before the names


def new_object_name() -> ObjectName:
    """A name that no original has had.

    Example:
        >>> new_object_name()
        'obj_01jd2x8k3vq5zt7m9n4r6s8w0y'
    """
    return new_id("obj")


def is_object_name(name: str) -> bool:
    """Whether `name` is one of ours, and so never a path out of the store."""
    return _NAME.fullmatch(name) is not None


class Originals(Protocol):
    """A store of original files: a folder, or a bucket. Used outside of transactions only, for it may be slow.

    Originals never change. A missing one raises `FileNotFoundError`, a failing store `StoreUnavailable`.
    """

    def put(self, name: ObjectName, file: Spooled) -> None:
        """Store a spooled file, durably when this returns. The spooled file may be gone then.

        Raises:
            FileExistsError: There is an original of this name; it is left as it is.
            StorageFull, StoreUnavailable: It is not stored; `delete` removes what is left where the store fell silent.
        """
        ...

    def open(
        self, name: ObjectName, *, start: int = 0, end: int | None = None
    ) -> AbstractContextManager[Iterator[bytes]]:
        """The bytes `[start, end)` of an original in blocks; to its end without `end`. A deletion does not cut it off.

        Raises:
            FileNotFoundError, StoreUnavailable: See above; at entry, and the second also between two blocks.
        """
        ...

    def local_copy(self, name: ObjectName) -> AbstractContextManager[Path]:
        """A file with an original's bytes, to be read until exit: the original itself, or a copy.

        Raises:
            FileNotFoundError, StorageFull, StoreUnavailable: See above; at entry.
        """
        ...

    def size(self, name: ObjectName) -> int | None:
        """The bytes of an original; None when it does not exist."""
        ...

    def delete(self, *names: ObjectName) -> None:
        """Delete originals, those that exist, durably when this returns.

        Raises:
            StoreUnavailable: Some may still be there.
        """
        ...


class Listing(Protocol):
    """A store that can say what it holds, so that it can be compared with the rows."""

    def put_before(self, moment: float) -> set[ObjectName]:
        """The names of the originals that were put before `moment` (Unix seconds)."""
        ...
