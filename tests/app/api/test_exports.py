"""Reports and the raw ledger as files: chosen by `Accept`, whole, streamed, and cut where they cannot be whole."""

import csv
import io
import json
import threading
import time

import anyio
import pytest
from starlette.requests import Request

from app.api.exports import ExportStream, wanted
from app.types import Settlement, UsageStatus
from app.usage.reports.line_rows import COLUMNS
from app.usage.reports.tables import CALLS, COMPLETIONS, COSTS, DOCUMENTS, EMBEDDINGS, JUDGE, RERANK
from tests.app.usage.samples import reservation

EVENTS = "/v1/admin/usage/events"
FILES = {
    EVENTS: COLUMNS,
    "/v1/admin/usage": CALLS.columns,
    "/v1/admin/usage/completions": COMPLETIONS.columns,
    "/v1/admin/usage/embeddings": EMBEDDINGS.columns,
    "/v1/admin/usage/rerank": RERANK.columns,
    "/v1/admin/usage/judge": JUDGE.columns,
    "/v1/admin/usage/documents": DOCUMENTS.columns,
    "/v1/admin/costs": COSTS.columns,
}
CSV, NDJSON = {"Accept": "text/csv"}, {"Accept": "application/x-ndjson"}


@pytest.fixture
def settled(state):
    """A call of Ada's."""
    state.usage.ledger.reserve(reservation("req_1:1", tenant_id="default", user_id="ada"))
    state.usage.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=7))


def request_that(accepts: str) -> Request:
    return Request({"type": "http", "headers": [(b"accept", accepts.encode())]})


@pytest.mark.parametrize(
    ("accepts", "form"),
    [
        ("", None),
        ("*/*", None),
        ("application/json", None),
        ("text/csv", "csv"),
        ("TEXT/CSV; charset=utf-8", "csv"),
        ("application/json;q=0.5, text/csv", "csv"),
        ("application/json, text/csv;q=0.5", None),
        ("text/csv;q=0", None),
        ("text/csv;q=x", None),
        ("text/html, application/x-ndjson;q=0.9, */*;q=0.8", "ndjson"),
    ],
)
def test_the_client_gets_what_it_prefers(accepts, form):
    assert wanted(request_that(accepts)) == form


def test_every_report_is_a_csv_file_of_the_whole_range(client, settled):
    for path, columns in FILES.items():
        answer = client.get(path, params={"start_time": int(time.time()) - 86_400}, headers=CSV)

        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"].startswith('attachment; filename="footnote-')
        assert answer.headers["content-disposition"].endswith('.csv"')
        assert answer.content.endswith(b"\r\n")
        assert b"#" not in answer.content
        assert tuple(next(csv.reader(io.StringIO(answer.text, newline="")))) == columns


def test_the_lines_of_ndjson_are_the_results_of_the_report(client, settled):
    end = int(time.time()) + 1
    params = {"start_time": end - 600, "end_time": end}
    times = ("start_time", "end_time", "start_local")
    for path in FILES:
        lines = client.get(path, params=params, headers=NDJSON)
        page = client.get(path, params=params).json()

        assert lines.headers["content-type"] == "application/x-ndjson"
        found = [json.loads(line) for line in lines.text.splitlines()]
        expected = page["data"]
        if expected and expected[0]["object"] == "bucket":
            expected = [result for bucket in page["data"] for result in bucket["results"]]
        assert [{name: value for name, value in row.items() if name not in times} for row in found] == expected
        nothing = {f"/v1/admin/usage/{report}" for report in ("embeddings", "rerank", "judge", "documents")}
        assert path in nothing or found


def test_a_file_ends_with_the_second_in_which_it_was_asked_for(client, settled):
    """What was settled just now is in it."""
    rows = list(csv.DictReader(io.StringIO(client.get(EVENTS, params={"start_time": 0}, headers=CSV).text)))

    assert [row["user_id"] for row in rows] == ["ada"]
    assert rows[0]["cost"] == ""


def test_a_file_has_no_pages_and_refuses_what_the_report_does(client):
    for path in FILES:
        for accept in (CSV, NDJSON):
            for params, param in (
                ({"start_time": 0, "limit": 5}, "limit"),
                ({"start_time": 5, "end_time": 5}, "end_time"),
                ({"start_time": 10**17}, "start_time"),
                ({"start_time": 0, "colour": "red"}, "colour"),
            ):
                answer = client.get(path, params=params, headers=accept)
                assert answer.status_code == 422, (path, params)
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["param"] == param


def test_a_file_of_the_future_is_its_header(client):
    answer = client.get(EVENTS, params={"start_time": 4_000_000_000, "end_time": 4_000_000_001}, headers=CSV)

    assert answer.text == ",".join(COLUMNS) + "\r\n"


def served(stream: ExportStream, *, leave_after: int | None = None) -> list[bytes]:
    """The bodies that were sent; the client leaves after some of them, or stays."""
    sent: list[bytes] = []

    async def run() -> None:
        left = anyio.Event()

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.body" and message.get("body"):
                sent.append(message["body"])
                if len(sent) == leave_after:
                    left.set()
                    await anyio.sleep(60)  # a client that is gone takes nothing more

        await stream({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)

    anyio.run(run)
    return sent


def pieces_of(made: list[int], closed: threading.Event, *, fail_at: int | None = None):
    try:
        for number in range(1000):
            if number == fail_at:
                raise RuntimeError("the database went away")
            made.append(number)
            yield b"%d\n" % number
    finally:
        closed.set()


def test_a_file_is_made_no_further_than_its_reader_takes_it():
    made: list[int] = []
    closed = threading.Event()

    sent = served(ExportStream(pieces_of(made, closed), "csv", subject="x", start=0, end=1), leave_after=3)

    assert sent == [b"0\n", b"1\n", b"2\n"]
    assert len(made) <= 4
    assert closed.is_set()


def test_a_file_that_cannot_be_finished_is_cut_and_does_not_look_whole():
    closed = threading.Event()
    stream = ExportStream(pieces_of([], closed, fail_at=2), "csv", subject="x", start=0, end=1)

    with pytest.raises(RuntimeError):
        served(stream)

    assert closed.is_set()


def test_a_file_that_fails_before_its_first_piece_is_a_problem_and_no_file():
    with pytest.raises(RuntimeError):
        ExportStream(pieces_of([], threading.Event(), fail_at=0), "csv", subject="x", start=0, end=1)


@pytest.mark.parametrize("width", ["15m", "1h", "1d", "1mo"])
@pytest.mark.parametrize("used", [True, False])
def test_the_years_before_the_first_call_are_not_paged_through(client, request, width, used):
    """From 1970 on there are two million quarters of an hour."""
    if used:
        request.getfixturevalue("settled")
    path, end = "/v1/admin/usage/completions", int(time.time()) + 1
    began = time.monotonic()
    lines = [
        client.get(path, params={"start_time": start, "end_time": end, "bucket_width": width}, headers=NDJSON).text
        for start in (0, end - 100 * 86_400)
    ]

    assert time.monotonic() - began < 30
    assert lines[0] == lines[1]
    assert len(lines[0].splitlines()) == int(used)
