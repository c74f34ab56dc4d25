"""Uploads in one call, for tests of documents."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from fastapi.testclient import TestClient

from app.server.state import State
from tests.app.api.conftest import client_of
from tests.app.server.stations import state_with


def zip_of(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def send(client: TestClient, name: str, content: bytes, **fields: str) -> Any:
    return client.post("/v1/documents", files={"file": (name, content)}, data=fields)


def documents(client: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/documents").json()["data"]
    return found


def with_state(state: State, **changes: Any) -> Iterator[tuple[TestClient, State]]:
    changed = state_with(state, **changes)
    with client_of(changed) as client:
        yield client, changed
