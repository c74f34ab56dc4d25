"""How the command line finds the server that runs over a data dir: its address and a key for its owner alone.

The server writes both to a file in the data dir while it runs. Only the user whom the server runs as can read the file;
that user could read the database as well. The key is made anew by each start and stored nowhere else.
"""

import json
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_FILE = "server.json"
_OTHERS = 0o077  # permissions of the group and of everybody


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server on this machine. `certificate` is the file of its TLS certificate, None without TLS."""

    url: str
    key: str
    certificate: str | None = None

    def verify(self) -> ssl.SSLContext | bool:
        """What a client verifies the server with: its own certificate, which may be for another name than the address.

        Raises:
            OSError: The certificate cannot be read.
        """
        if self.certificate is None:
            return True
        context = ssl.create_default_context(cafile=self.certificate)
        context.check_hostname = False
        return context


@contextmanager
def announced(server: LocalServer, data_dir: Path) -> Iterator[None]:
    """Tell the command line of a server until the block ends; the caller holds the data dir's lock.

    Raises:
        OSError: The file cannot be written.
    """
    path, part = data_dir / _FILE, data_dir / f"{_FILE}.part"
    part.unlink(missing_ok=True)
    told = {"url": server.url, "key": server.key, "certificate": server.certificate}
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(told, file)
    part.rename(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def forget(data_dir: Path) -> None:
    """Remove what a killed server left; the caller holds the data dir's lock, so that none runs.

    Its address may be somebody else's by now.
    """
    (data_dir / _FILE).unlink(missing_ok=True)


def local_server(data_dir: Path) -> LocalServer | None:
    """The server that was last announced in a data dir, running or not.

    None where there is none, or where the file is not of the current user alone: somebody else may have written it.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        descriptor = os.open(data_dir / _FILE, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
                return None
            told = json.load(file)
        return LocalServer(str(told["url"]), str(told["key"]), told["certificate"])
    return None
