"""SIGTERM drains the server: new work is refused, running work may finish, and open calls are settled."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.types import UsageStatus
from tests.faults.busy import BUSY_SECONDS, WORD, begun_file, metered_busily
from tests.faults.forked import ForkedServer
from tests.faults.metered import metered_slowly
from tests.faults.open_streams import OpenStream, rows_of

ASK = {"question": "How many ships?", "on_no_evidence": "answer", "stream": True}
SHORT, LONG = {**ASK, "max_output_tokens": 20}, {**ASK, "max_output_tokens": 2000}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ForkedServer]]:
    servers: list[ForkedServer] = []

    def start(**options: float) -> ForkedServer:
        servers.append(ForkedServer(tmp_path / "data", metered_slowly, **options))
        return servers[-1].start()

    yield start
    for server in servers:
        server.close()


def test_c7_a_drain_refuses_what_is_new_and_lets_finish_what_runs(serve: Callable[..., ForkedServer]) -> None:
    server = serve(drain_s=30.0)
    running = OpenStream(server, "/v1/ask", SHORT | {"max_output_tokens": 60})
    running.wait_for_text()

    server.signal(signal.SIGTERM)
    while (ready := server.http.get("/readyz")).status_code == 200:
        time.sleep(0.005)
    refused = server.http.post("/v1/ask", json=ASK)

    assert "server: stopping" in ready.json()["reasons"]
    assert refused.status_code == 503
    assert refused.json()["type"] == "urn:footnote:problem:server-shutdown"
    assert refused.headers["content-type"] == "application/problem+json"
    assert (refused.headers["connection"], int(refused.headers["retry-after"])) == ("close", 30)
    assert refused.headers["x-request-id"] == refused.json()["instance"]
    assert server.http.get("/healthz").status_code == 200, "the process lives"
    assert running.last_event() == "done"
    assert server.ended() == 0
    (row,) = rows_of(server.data_dir)  # without documents there is nothing to embed a question for
    assert (row.operation, row.status) == ("chat", UsageStatus.COMPLETED)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_c7_streams_that_outlive_the_drain_end_with_an_event_that_says_so(
    serve: Callable[..., ForkedServer], number: signal.Signals
) -> None:
    server = serve(drain_s=0.3)
    server.upload("log.txt", "How many ships did the keeper count? The keeper counted forty ships.")
    server.settled()
    ours = [OpenStream(server, "/v1/ask", LONG) for _ in range(2)]
    asked = [{"role": "user", "content": "How many ships did the keeper count?"}]
    chat = {"model": "footnote", "messages": asked, "stream": True, "max_tokens": 2000}
    openai = OpenStream(server, "/v1/chat/completions", chat)
    for stream in (*ours, openai):
        stream.wait_for_text()

    started = time.monotonic()
    server.signal(number)

    assert server.ended() == 0
    assert time.monotonic() - started < 0.3 + 10
    for stream in ours:
        assert stream.last_event() == "error"
        assert stream.last_data()["type"] == "urn:footnote:problem:server-shutdown"
        assert stream.last_data()["instance"] == stream.request_id
    assert openai.last_data()["error"]["code"] == "server_shutdown"
    chats = [row.status for row in rows_of(server.data_dir) if row.operation == "chat"]
    assert chats == [UsageStatus.SERVER_ABORT] * 3, "it was not the clients who left"


def test_c7_an_answer_that_is_not_streamed_is_refused_when_the_time_is_up(serve: Callable[..., ForkedServer]) -> None:
    server, answers = serve(drain_s=0.3), []
    asking = threading.Thread(
        target=lambda: answers.append(server.http.post("/v1/ask", json=LONG | {"stream": False})), daemon=True
    )
    asking.start()
    while server.http.get("/readyz").json()["checks"]["engine"]["running"] == 0:
        time.sleep(0.01)

    server.signal(signal.SIGTERM)

    assert server.ended() == 0
    asking.join(30)
    assert [(one.status_code, one.json()["type"]) for one in answers] == [(503, "urn:footnote:problem:server-shutdown")]
    assert answers[0].headers["connection"] == "close"
    assert [row.status for row in rows_of(server.data_dir) if row.operation == "chat"] == [UsageStatus.SERVER_ABORT]


def test_c7_ingestion_is_gone_on_with_at_the_next_start(serve: Callable[..., ForkedServer]) -> None:
    server = serve(drain_s=1.0)
    sent = [server.upload(f"{number}.txt", f"The keeper of harbour {number} counted ships.") for number in range(20)]

    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    again = serve()

    assert {one["id"] for one in again.settled() if one["status"] == "indexed"} == {one["id"] for one in sent}


def test_c7_a_thread_that_is_busy_in_plain_python_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    server = ForkedServer(tmp_path / "data", metered_busily, drain_s=0.3).start()
    try:
        asked = ASK | {"question": f"How {WORD} is a rule?"}
        running = OpenStream(server, "/v1/ask", asked)
        deadline = time.monotonic() + 30
        while not begun_file(server.data_dir).exists():
            assert time.monotonic() < deadline, "the rule has not begun"
            time.sleep(0.01)

        began = time.monotonic()
        server.signal(signal.SIGTERM)

        assert server.ended(seconds=BUSY_SECONDS / 2) == 0
        assert time.monotonic() - began < BUSY_SECONDS / 2
        assert running.outcome() in {"error", "refused"}
        running.close()
    finally:
        server.close()
    with_books = ForkedServer(tmp_path / "data").start()
    with_books.stop()
    with_books.close()
    assert UsageStatus.RESERVED not in {row.status for row in rows_of(server.data_dir)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_c8_a_second_signal_is_a_crash_and_the_next_start_closes_the_books(
    serve: Callable[..., ForkedServer], number: signal.Signals
) -> None:
    server = serve(drain_s=60.0)
    OpenStream(server, "/v1/ask", LONG).wait_for_text()
    server.signal(signal.SIGTERM)
    while server.http.get("/readyz").status_code == 200:
        time.sleep(0.005)

    server.signal(number)

    assert server.ended(seconds=10) == -number
    serve().stop()
    statuses = [row.status for row in rows_of(server.data_dir) if row.operation == "chat"]
    assert statuses == [UsageStatus.RECOVERED]
