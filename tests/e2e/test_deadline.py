"""A server whose answers may take two seconds: what does not end by then is cut, said so, and settled."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server import Server

LIST = {"type": "array", "items": {"type": "string", "minLength": 20}, "minItems": 1000}
ENDLESS: dict[str, Any] = {
    "model": "footnote",
    "messages": [{"role": "user", "content": "Which rivers does the text name?"}],
    "max_tokens": 3000,
    "response_format": {"type": "json_schema", "json_schema": {"name": "rivers", "schema": LIST, "strict": True}},
}


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir: Path = tmp_path_factory.mktemp("hurried") / "data"
    server = Server(data_dir, answer_deadline_s=2.0)
    try:
        server.start()
        rivers = server.upload("rivers.txt", b"The text names the rivers Elbe, Havel and Spree.")
        assert server.settled(rivers["id"])["status"] == "indexed"
        while server.http.post("/v1/chat/completions", json={**ENDLESS, "max_tokens": 1}).status_code != 200:
            time.sleep(0.1)  # the first answers may wait for what is made at their first use
        yield server
    finally:
        server.close()


def spent(server: Server) -> dict[str, int]:
    report = server.http.get(
        "/v1/admin/usage/completions",
        params={"start_time": int(time.time()) - 7200, "bucket_width": "1h"},
    ).json()
    results = [result for bucket in report["data"] for result in bucket["results"]]
    return {name: sum(result[name] for result in results) for name in ("num_aborted", "output_tokens")}


def test_an_answer_ends_at_the_deadline_with_504_and_the_engine_is_free(hurried):
    before = spent(hurried)
    response = hurried.http.post("/v1/chat/completions", json=ENDLESS)
    after = spent(hurried)

    assert response.status_code == 504
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["type"] == "urn:footnote:problem:deadline"
    assert response.json()["error"]["code"] == "deadline"
    assert hurried.metric("footnote_engine_running") == 0
    assert after["num_aborted"] == before["num_aborted"] + 1
    assert 0 < after["output_tokens"] - before["output_tokens"] < 3000
    assert hurried.http.get("/readyz").status_code == 200


def test_a_stream_ends_at_the_deadline_with_its_text_so_far_its_usage_and_the_error(hurried):
    before = spent(hurried)
    body = {**ENDLESS, "stream": True, "stream_options": {"include_usage": True}}
    lines = [line for line in hurried.http.post("/v1/chat/completions", json=body).text.splitlines() if line]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if not line.startswith(":")]
    *said, error = chunks

    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in said).startswith("[")
    assert error["error"]["code"] == "deadline"
    assert error["usage"]["completion_tokens"] == spent(hurried)["output_tokens"] - before["output_tokens"] > 0
