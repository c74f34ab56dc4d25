"""app.api.jobs: jobs are listed, read and cancelled."""

from fastapi.testclient import TestClient


def upload(client: TestClient, name: str, **fields: str) -> dict[str, str]:
    body: dict[str, str] = client.post("/v1/documents", json={"text": name, "filename": f"{name}.txt", **fields}).json()
    return body


def test_a_waiting_job_is_cancelled_once_and_its_document_can_be_retried(client: TestClient) -> None:
    document = upload(client, "first")

    cancelled = client.post(f"/v1/jobs/{document['job_id']}/cancel")
    again = client.post(f"/v1/jobs/{document['job_id']}/cancel")

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert cancelled.json()["error"]["code"] == "cancelled"
    assert again.status_code == 409
    read = client.get(f"/v1/documents/{document['id']}").json()
    assert (read["status"], read["error"]["code"], read["next_attempt_at"]) == ("failed", "cancelled", None)
    assert client.post(f"/v1/documents/{document['id']}/retry").json()["status"] == "queued"


def test_jobs_are_listed_by_status_and_document(client: TestClient) -> None:
    first, second = upload(client, "first"), upload(client, "second")
    client.post(f"/v1/jobs/{first['job_id']}/cancel")

    def ids(**params: str) -> list[str]:
        return [job["id"] for job in client.get("/v1/jobs", params=params).json()["data"]]

    assert ids() == [second["job_id"], first["job_id"]]
    assert ids(status="queued") == [second["job_id"]]
    assert ids(document_id=first["id"]) == [first["job_id"]]
    assert client.get("/v1/jobs", params={"document_id": "doc_nope"}).status_code == 404
    page = client.get("/v1/jobs", params={"limit": "1"}).json()
    assert page["has_more"]
    assert ids(cursor=page["next_cursor"]) == [first["job_id"]]


def test_a_reindexing_is_a_job_to_be_read_and_cancelled(client: TestClient) -> None:
    collection = client.post("/v1/collections", json={"name": "reports"}).json()

    begun = client.post(f"/v1/collections/{collection['id']}/reindex")

    body = begun.json()
    assert begun.status_code == 202
    assert (body["object"], body["kind"], body["status"], body["documents"]) == ("job", "reindex", "done", 0)
    assert client.get(f"/v1/jobs/{body['id']}").json() == body
    assert client.post(f"/v1/jobs/{body['id']}/cancel").status_code == 409
    assert client.post("/v1/collections/col_nope/reindex").status_code == 404
