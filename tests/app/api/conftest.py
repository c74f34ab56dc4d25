"""The application over a scratch data dir, without models."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from tests.app.api.openai.openai_server import Service, openai_server
from tests.app.api.reused import ReusingClient
from tests.installation import installed

ADMIN_KEY = "fn_test_admin_key_of_the_suite"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    settings = Settings(data_dir=installed(tmp_path / "data"), admin_key=ADMIN_KEY, _env_file=None)
    with build(settings, with_models=False) as state:
        yield state


def client_of(state: State) -> TestClient:
    return ReusingClient(state, headers={"Authorization": f"Bearer {ADMIN_KEY}"})


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    with client_of(state) as client:
        yield client


@pytest.fixture(scope="session")
def openai_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server for OpenAI's client, shared: tests find their own things in it by collections of their own."""
    with openai_server(tmp_path_factory.mktemp("openai") / "data") as service:
        yield service
