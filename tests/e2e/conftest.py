"""Servers for the tests that do not stop them: as it is installed, and one whose answers are generated."""

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


@pytest.fixture(scope="session")
def generating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose language model answers from all passages found, in float32: the same answer every time."""
    data_dir: Path = tmp_path_factory.mktemp("generating") / "data"
    server = Server(data_dir, answers="generated", dtype="float32")
    try:
        yield server.start()
    finally:
        server.close()
