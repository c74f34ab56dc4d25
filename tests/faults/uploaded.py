"""A server that is killed, and a client of an application in this process, for faults of uploads."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.server.state import State
from tests.app.evaluation.application import application
from tests.faults.forked import ForkedServer
from tests.server import ADMIN_KEY


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkedServer]:
    """A server that is not started yet."""
    server = ForkedServer(tmp_path / "data")
    yield server
    server.close()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with application(tmp_path / "data") as state:
        yield state


def client_of(state: State) -> TestClient:
    app = create_app(lambda: nullcontext(state), version="0")
    return TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"})


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    with client_of(state) as client:
        yield client


def originals(data_dir: Path) -> list[Path]:
    return [path for path in (data_dir / "files").rglob("*") if path.is_file()]
