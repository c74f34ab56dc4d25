"""Concurrent streams, clients that disconnect, and cancellation."""

import json
import threading
import time
from typing import Any

import httpx
import pytest

from tests.server import Server

LONG = {
    "question": "Tell me everything about rivers, in detail.",
    "max_output_tokens": 400,
    "on_no_evidence": "answer",
    "document_ids": [],
}


def stream_client(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers=server.http.headers, timeout=120, trust_env=False)


def wait_for(condition, *, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_two_streams_advance_together_and_closing_one_frees_its_slot(server):
    seen: dict[str, list[float]] = {"a": [], "b": []}
    stop = {"a": threading.Event(), "b": threading.Event()}

    def read(name: str) -> None:
        with (
            stream_client(server) as client,
            client.stream("POST", "/v1/ask", json={**LONG, "stream": True}) as response,
        ):
            for line in response.iter_lines():
                if line.startswith("event: delta"):
                    seen[name].append(time.monotonic())
                if stop[name].is_set():
                    return

    cancelled = server.metric("footnote_engine_cancelled_total")
    threads = {name: threading.Thread(target=read, args=(name,)) for name in seen}
    for thread in threads.values():
        thread.start()

    assert wait_for(lambda: min(len(times) for times in seen.values()) >= 5)
    assert server.metric("footnote_engine_running") == 2
    overlap = min(times[-1] for times in seen.values()) - max(times[0] for times in seen.values())
    assert overlap > 0, "one stream waited for the other"

    stop["a"].set()
    threads["a"].join(timeout=20)
    assert wait_for(lambda: server.metric("footnote_engine_running") == 1, seconds=5)
    counted = len(seen["b"])
    assert wait_for(lambda: len(seen["b"]) > counted), "the other stream goes on"
    stop["b"].set()
    threads["b"].join(timeout=20)
    assert wait_for(lambda: server.metric("footnote_engine_running") == 0, seconds=5)
    assert server.metric("footnote_engine_cancelled_total") == cancelled + 2


def test_a_reader_who_leaves_is_billed_for_what_was_generated(server):
    key = server.http.post("/v1/admin/keys", json={"name": f"leaver-{time.time_ns()}"}).json()
    headers = {"Authorization": f"Bearer {key['secret']}"}
    with stream_client(server) as client:
        with client.stream("POST", "/v1/ask", json={**LONG, "stream": True}, headers=headers) as response:
            for number, _ in enumerate(line for line in response.iter_lines() if line.startswith("event: delta")):
                if number == 10:
                    break

    def row() -> dict[str, Any]:
        now = int(time.time())
        report = server.http.get(
            "/v1/admin/usage/completions",
            params={"start_time": now - 7200, "bucket_width": "1h", "group_by": "api_key_id", "api_key_ids": key["id"]},
        ).json()
        results = [result for bucket in report["data"] for result in bucket["results"]]
        return results[0] if results else {}

    assert wait_for(lambda: bool(row()))
    result = row()
    assert result["num_aborted"] == 1
    assert 10 <= result["output_tokens"] < 400
    assert result["output_delivered_tokens"] <= result["output_tokens"]


def test_a_client_that_hangs_up_without_streaming_frees_its_slot_too(server):
    with stream_client(server) as client, pytest.raises(httpx.ReadTimeout):
        client.post("/v1/ask", json=LONG, timeout=1.0)

    assert wait_for(lambda: server.metric("footnote_engine_running") == 0, seconds=5)


def test_cancelling_by_id_ends_the_stream_with_done(server):
    with stream_client(server) as client, client.stream("POST", "/v1/ask", json={**LONG, "stream": True}) as response:
        request_id, last = response.headers["x-request-id"], ""
        for number, line in enumerate(response.iter_lines()):
            if number == 12:
                assert server.http.post(f"/v1/requests/{request_id}/cancel").json() == {"cancelled": True}
            if line.startswith("data: "):
                last = line[6:]

    assert json.loads(last)["finish_reason"] == "cancelled"
    assert server.http.post(f"/v1/requests/{request_id}/cancel").status_code == 404


def test_ingestion_progress_is_streamed_to_its_end(server):
    queued = server.upload("events.txt", b"A text about lighthouses. " * 400, wait=0)
    with server.http.stream("GET", f"/v1/documents/{queued['id']}/events") as response:
        lines = [line for line in response.iter_lines() if line]

    assert lines[-2:] == ["event: done", 'data: {"status": "indexed"}']
    stages = [json.loads(line[6:])["status"] for line in lines if line.startswith("data: ")]
    assert stages[-1] == "indexed"
