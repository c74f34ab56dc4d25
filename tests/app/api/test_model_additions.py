"""POST /v1/admin/models: the operator adds a model of the hub, sees how far it is, and may cancel it."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from app.db.audit import AuditLog
from app.errors import StoreUnavailable
from app.models.additions import ModelAdditions
from app.server.state import State
from tests.app.api.conftest import client_of
from tests.app.models.hub_server import COMMIT, Hub
from tests.app.models.test_additions import environment_of, wait_until
from tests.app.models.test_hub import NAME, hub
from tests.app.server.stations import state_with

__all__ = ["hub"]


@pytest.fixture
def adding(state: State, hub: Hub, tmp_path) -> Iterator[TestClient]:
    """A client of a server that adds models of the hub."""
    additions = ModelAdditions(models_dir=tmp_path / "models", environment=environment_of(hub))
    changed = state_with(state, serving=replace(state.serving, additions=additions))
    with client_of(changed) as client:
        yield client
    additions.close()


def listed(client: TestClient) -> list[dict[str, object]]:
    found: list[dict[str, object]] = client.get("/v1/admin/models/additions").json()["data"]
    return found


def test_a_model_is_added_and_noted_in_the_audit_log(adding: TestClient, hub: Hub) -> None:
    go_on = hub.held["model.safetensors"] = threading.Event()
    response = adding.post("/v1/admin/models", json={"model": NAME})
    begun = response.json()

    assert response.status_code == 202, response.text
    assert begun["object"] == "model_addition"
    assert (begun["model"], begun["commit"], begun["licence"], begun["state"]) == (
        NAME,
        COMMIT,
        "apache-2.0",
        "downloading",
    )
    assert adding.post("/v1/admin/models", json={"model": NAME}).status_code == 409
    go_on.set()
    wait_until(lambda: listed(adding)[0]["state"] == "added")
    assert listed(adding)[0] == {**begun, "state": "added", "done_bytes": begun["bytes"]}
    (noted,) = [one for one in adding.get("/v1/admin/audit").json()["data"] if one["action"] == "model.added"]
    assert noted["target"] == NAME
    assert noted["detail"] == {"commit": COMMIT, "licence": "apache-2.0"}


def test_terms_that_are_not_accepted_are_a_problem_of_their_own(adding: TestClient, hub: Hub) -> None:
    hub.licence = "gemma"
    refused = adding.post("/v1/admin/models", json={"model": NAME})

    assert refused.status_code == 409
    assert refused.json()["type"].endswith("terms-not-accepted")
    assert "licence gemma" in refused.json()["detail"]
    assert adding.post("/v1/admin/models", json={"model": NAME, "accept_terms": True}).status_code == 202


def test_a_download_is_cancelled(adding: TestClient, hub: Hub) -> None:
    held = hub.held["model.safetensors"] = threading.Event()
    begun = adding.post("/v1/admin/models", json={"model": NAME}).json()

    assert adding.delete(f"/v1/admin/models/additions/{begun['id']}").json()["state"] == "cancelled"
    assert adding.delete("/v1/admin/models/additions/mod_1").status_code == 404
    held.set()


def test_a_model_that_the_hub_does_not_have_is_named(adding: TestClient, hub: Hub) -> None:
    hub.status, hub.error = 404, "RepoNotFound"
    refused = adding.post("/v1/admin/models", json={"model": "someone/else"})

    assert refused.status_code == 422
    assert "someone/else" in refused.json()["detail"]
    assert listed(adding) == []


def test_a_model_that_the_audit_log_cannot_have_is_not_added(
    adding: TestClient, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hub.held["model.safetensors"] = threading.Event()

    def refuse(*_: object, **__: object) -> None:
        raise StoreUnavailable("The database does not answer.")

    monkeypatch.setattr(AuditLog, "record_in", refuse)

    assert adding.post("/v1/admin/models", json={"model": NAME}).status_code == 503
    assert [one["state"] for one in listed(adding)] == ["cancelled"]
    held.set()
