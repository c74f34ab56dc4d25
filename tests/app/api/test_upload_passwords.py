"""Passwords of encrypted files: kept in memory for the job alone, and sent again with a retry."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.documents.intake import Intake
from app.documents.passwords import Passwords
from app.server.state import State
from tests.app.api.uploading import send, with_state


def fail_next(state: State, code: str) -> str:
    claimed = state.corpus.jobs.claim("boot-test")
    assert claimed is not None
    state.corpus.jobs.fail(claimed[0], code=code, detail="It needs a password.")
    return claimed[1].id


@pytest.fixture
def kept(state: State) -> Iterator[tuple[TestClient, State, Passwords]]:
    """The application, and the passwords it holds."""
    passwords = Passwords()
    intake = Intake(
        documents=state.corpus.documents,
        collections=state.corpus.collections,
        files=state.corpus.files,
        passwords=passwords,
        wake=lambda: None,
        indexes=state.serving,
    )
    for client, changed in with_state(state, intake=intake):
        yield client, changed, passwords


def test_a_password_waits_for_its_job_in_memory_alone(kept):
    client, state, passwords = kept
    response = send(client, "a.txt", b"Words.", password="open-sesame")

    assert passwords.of(response.json()["job_id"]) == "open-sesame"
    assert "open-sesame" not in response.text
    for path in state.settings.data_dir.rglob("*"):
        assert not path.is_file() or b"open-sesame" not in path.read_bytes()


def test_a_retry_brings_the_password_that_was_lacking(kept):
    client, state, passwords = kept
    document = send(client, "a.txt", b"Words.").json()
    fail_next(state, "encrypted")

    response = client.post(f"/v1/documents/{document['id']}/retry", json={"password": "open-sesame"})

    assert response.status_code == 202
    assert passwords.of(response.json()["job_id"]) == "open-sesame"


def test_a_retry_needs_no_body(kept):
    client, state, passwords = kept
    document = send(client, "a.txt", b"Words.").json()
    fail_next(state, "internal-error")

    assert client.post(f"/v1/documents/{document['id']}/retry").status_code == 202
    assert len(passwords) == 0


def test_the_same_bytes_sent_again_with_a_password_are_tried_with_it(kept):
    client, state, passwords = kept
    first = send(client, "a.txt", b"Words.").json()
    fail_next(state, "encrypted")

    again = send(client, "a.txt", b"Words.", password="open-sesame").json()

    assert again["duplicate_of"] == first["id"]
    assert again["status"] == "queued"
    assert passwords.of(again["job_id"]) == "open-sesame"


def test_a_password_that_is_wrong_in_form_is_not_in_the_answer(kept):
    client, _, passwords = kept
    response = send(client, "a.txt", b"Words.", password="telltale" * 200)

    assert response.status_code == 422
    assert "telltale" not in response.text
    assert len(passwords) == 0
