"""A bucket for tests: moto serves it on this machine, in a process of its own."""

import atexit
import itertools
import os
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

KEYS = {"AWS_ACCESS_KEY_ID": "footnote-of-tests", "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-bucket"}
"""As AWS's tools take them from the environment; moto takes any."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, at the `endpoint` of its server. It takes every key."""

    endpoint: str
    name: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings of an installation whose originals are in it; the keys are in the environment."""
        return {
            "originals": f"s3://{self.name}",
            "originals_endpoint": self.endpoint,
            "originals_region": "us-east-1",
        }

    def held(self) -> dict[str, bytes]:
        """The objects by their keys."""
        import obstore

        store = self.store()
        keys = [one["path"] for some in obstore.list(store) for one in some]
        return {key: bytes(obstore.get(store, key).bytes()) for key in keys}

    def store(self) -> "S3Store":
        """The bucket as obstore has it."""
        from obstore.store import S3Store

        return S3Store(
            self.name,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            client_options={"allow_http": True},
        )


@pytest.fixture
def bucket_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys in the environment of a test, and nothing else that AWS's tools look for."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def empty_bucket() -> Bucket:
    """A bucket of its own; the test is skipped where moto is not installed."""
    bucket = Bucket(_server(), f"bucket-{next(_names)}")
    httpx.put(f"{bucket.endpoint}/{bucket.name}", trust_env=False, timeout=60).raise_for_status()
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
