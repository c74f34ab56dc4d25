"""One server for the tests that do not stop it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import Server


@pytest.fixture(scope="session", autouse=True)
def _half_the_machine() -> None:
    """Two test processes share two cores: each server gets one thread."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir: Path = tmp_path_factory.mktemp("served") / "data"
    server = Server(data_dir)
    try:
        yield server.start()
    finally:
        server.close()
