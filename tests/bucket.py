"""A bucket for tests: moto serves it on this machine, in a process of its own."""

import atexit
import itertools
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.processes import running

if TYPE_CHECKING:
    from obstore.store import S3Store

_MOTO = Path(sys.prefix) / "moto" / "bin" / "moto_server"
"""moto needs an older python-dateutil than Footnote is held to: `make test` installs it into an environment apart."""

_LISTENS = re.compile(rb"http://127\.0\.0\.1:[1-9][0-9]*")
_names = itertools.count()


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, at the `endpoint` of its server. It takes every key."""

    endpoint: str
    name: str

    def store(self) -> "S3Store":
        """The bucket as obstore has it."""
        from obstore.store import S3Store

        return S3Store(
            self.name,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id="footnote",
            secret_access_key="a-secret",
            client_options={"allow_http": True},
        )


def empty_bucket() -> Bucket:
    """A bucket of its own; the test is skipped where moto is not installed."""
    bucket = Bucket(_server(), f"bucket-{next(_names)}")
    httpx.put(f"{bucket.endpoint}/{bucket.name}", trust_env=False).raise_for_status()
    return bucket


@cache
def _server() -> str:
    """The address of this process's server, which ends with the process."""
    if not _MOTO.is_file():
        pytest.skip("moto is not installed: make test installs it")
    stack = ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    log = stack.enter_context((folder / "moto.log").open("w+b"))
    command = [str(_MOTO), "-H", "127.0.0.1", "-p", "0"]
    process = stack.enter_context(running(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=log))
    while not (found := _LISTENS.search((folder / "moto.log").read_bytes())):
        assert process.poll() is None, (folder / "moto.log").read_text()
        time.sleep(0.05)
    return found[0].decode()
