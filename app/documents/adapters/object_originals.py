"""The store of originals in a bucket: S3 and what speaks its protocol, or any other store that obstore opens."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import ObjectStore, S3Store

from app.disk import disk_refusal
from app.documents.adapters.local_copies import LocalCopies
from app.documents.ports import ObjectName, is_object_name
from app.documents.spool import Spooled
from app.errors import StoreUnavailable
from app.telemetry.logs import logger

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

_FOLDER = "originals/"
_BLOCK = 1 << 20
_PART = 8 << 20  # S3 takes parts from 5 MiB on, and 10,000 of them
_PARTS_AT_ONCE = 3  # so an upload holds 24 MiB, whatever its size
_GONE = "The bucket of the originals does not exist."
_REFUSED = "The bucket of the originals refuses this server's keys."
_SILENT = "The store of the originals does not answer; try again in a moment."


def bucket(name: str, *, prefix: str = "", endpoint: str = "", region: str = "") -> ObjectStore:
    """A bucket of S3, or of what speaks its protocol at `endpoint`. Nothing is asked of it yet.

    Keys come as AWS's own tools have them: from `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, a web identity, a
    container or the machine. So do endpoint and region where they are empty.

    Args:
        name: Of the bucket, which exists.
        prefix: Put before the key of each object; may be empty.
        endpoint: Base URL of the server; only one that is named here may be HTTP without TLS.
        region: Of the bucket.
    """
    config: S3Config = {}
    if endpoint:
        config["endpoint"] = endpoint
    if region:
        config["region"] = region
    options: ClientConfig = {
        "connect_timeout": timedelta(seconds=5),
        "read_timeout": timedelta(minutes=1),  # of a wait, or of sending a part
        "timeout": timedelta(days=1),  # of a whole request: a large original is read slowly by who has it sent
    }
    if endpoint.startswith("http://"):
        options["allow_http"] = True
    return S3Store(
        name,
        config=config,
        prefix=prefix or None,
        client_options=options,
        retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
    )


class ObjectOriginals:
    """Objects below `originals/`, each put once and never written over.

    Example:
        >>> originals = ObjectOriginals(bucket("footnote"), copies=LocalCopies(folder, most_bytes=1 << 30))
        >>> originals.size("obj_01jd2x8k3vq5zt7m9n4r6s8w0y")
        20123
    """

    def __init__(self, store: ObjectStore, *, copies: LocalCopies) -> None:
        """`copies` has those that are read as files."""
        self._store = store
        self._copies = copies

    def require(self) -> None:
        """Check that the bucket is there and may be read.

        Raises:
            StoreUnavailable: It is not, or may not.
        """
        with suppress(FileNotFoundError), _told("none"):
            obstore.get(
                self._store, _FOLDER + "none"
            )  # an answer to GET says whether the bucket or the object is missing

    def put(self, name: ObjectName, file: Spooled) -> None:
        """See `Originals.put`.

        A large file is sent in parts, of which only a few are in memory. Parts are not taken on the condition that
        there is no such object, so that is looked up before: names are random, no other put of this one comes between.
        """
        in_parts = file.bytes > _PART
        if in_parts and self.size(name) is not None:
            raise _exists(name)
        try:
            with _told(name):
                obstore.put(
                    self._store,
                    _key(name),
                    file.path,
                    mode=None if in_parts else "create",
                    use_multipart=in_parts,
                    chunk_size=_PART,
                    max_concurrency=_PARTS_AT_ONCE,
                )
        except FileNotFoundError as error:
            raise StoreUnavailable(_GONE) from error

    @contextmanager
    def open(self, name: ObjectName, *, start: int = 0, end: int | None = None) -> Iterator[Iterator[bytes]]:
        """See `Originals.open`."""
        if start == 0 and end is None:
            yield self._blocks(name)
            return
        size = self.size(name)
        if size is None:
            raise FileNotFoundError(name)
        stop = size if end is None else min(end, size)
        yield self._blocks(name, part=(start, stop)) if start < stop else iter(())

    @contextmanager
    def local_copy(self, name: ObjectName) -> Iterator[Path]:
        """See `Originals.local_copy`."""
        with self._copies.of(name, lambda path: self._fetch(name, path)) as path:
            yield path

    def size(self, name: ObjectName) -> int | None:
        """See `Originals.size`."""
        with suppress(FileNotFoundError), _told(name):
            return obstore.head(self._store, _key(name))["size"]
        return None

    def delete(self, *names: ObjectName) -> None:
        """See `Originals.delete`."""
        self._copies.forget(*names)
        try:
            with _told(", ".join(names)):
                obstore.delete(self._store, [_key(name) for name in names])  # S3: a thousand in one request
        except FileNotFoundError:  # a bucket does not even say so; who does may have left out the rest
            for name in names:
                with suppress(FileNotFoundError), _told(name):
                    obstore.delete(self._store, _key(name))

    def _fetch(self, name: ObjectName, path: Path) -> int:
        """Write an original to `path`, as old as its object, so that a browser knows it again; returns its bytes."""
        with _told(name):
            found = obstore.get(self._store, _key(name))
        put_at = found.meta["last_modified"].timestamp()
        try:
            with path.open("wb") as file:
                for block in _streamed(found.stream(min_chunk_size=_BLOCK), name):
                    file.write(block)
            os.utime(path, (put_at, put_at))
        except OSError as error:
            raise disk_refusal(error) or error from error
        return found.meta["size"]

    def _blocks(self, name: ObjectName, *, part: tuple[int, int] | None = None) -> Iterator[bytes]:
        """The bytes of an object, or of the part `[start, end)` of it, which is not empty."""
        with _told(name):
            found = obstore.get(self._store, _key(name), options=None if part is None else {"range": part})
        return _streamed(found.stream(min_chunk_size=_BLOCK), name)


def _key(name: ObjectName) -> str:
    assert is_object_name(name), "names of originals are made here"
    return _FOLDER + name


def _exists(name: ObjectName) -> FileExistsError:
    return FileExistsError(f"There is an original named {name}.")


def _streamed(blocks: "obstore.BytesStream", name: ObjectName) -> Iterator[bytes]:
    with _told(name):
        yield from blocks


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Translates the store's errors; what the store said goes to the log alone."""
    try:
        yield
    except AlreadyExistsError as error:
        raise _exists(name) from error
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):  # an answer to HEAD does not say so
            raise StoreUnavailable(_GONE) from error
        raise FileNotFoundError(name) from error
    except BaseError as error:
        logger().warning("originals.failed", error=type(error).__name__, said=str(error).partition("\n")[0][:500])
        refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
        raise StoreUnavailable(_REFUSED if refused else _SILENT) from error
