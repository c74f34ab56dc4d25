"""F5: the machine's clock jumps while a server serves, and between two starts of it."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.changes import rows
from tests.faults.clocks.moved import MovableClock, moved_server
from tests.faults.ledger import Accounts, look, set_budgets, set_prices
from tests.faults.preloaded.server import PreloadedServer, cannot_preload

HOUR, DAY = 3600.0, 86_400.0
JUMPS = {
    "an hour back": (-HOUR, 0.0),
    "a day forward": (DAY, 0.0),
    "back again": (0.0, 0.0),
    "between two readings": (0.0, 2 * HOUR),
    "a day back": (-DAY, 0.0),
}
ASK = {"question": "How many ships did the keeper count?", "on_no_evidence": "answer", "max_output_tokens": 40}
LONGEST_S = 60.0  # of any request here, whatever the clock says
DURATIONS = (
    "SELECT settled_at - accepted_at FROM usage_event",
    "SELECT total_us FROM usage_event WHERE total_us IS NOT NULL",
    "SELECT ttft_us FROM usage_event WHERE ttft_us IS NOT NULL",
    "SELECT started_at - created_at FROM job WHERE started_at IS NOT NULL",
    "SELECT finished_at - started_at FROM job WHERE finished_at IS NOT NULL",
    "SELECT updated_at - created_at FROM document",
    "SELECT updated_at - created_at FROM conversation",
    "SELECT t.created_at - c.created_at FROM conversation_turn t JOIN conversation c ON c.id = t.conversation_id",
    "SELECT updated_at - started_at FROM engine_counter",
    "SELECT expires_at - created_at FROM access_session",
)

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(cannot_preload() is not None, reason=f"no clock is moved: {cannot_preload()}"),
]


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[tuple[PreloadedServer, MovableClock]]:
    with moved_server(tmp_path) as made:
        yield made


def post(server: PreloadedServer, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    began = time.monotonic()
    response = server.http.post(path, json=body, headers=headers)
    assert time.monotonic() - began < LONGEST_S
    return response


def asked(server: PreloadedServer, conversation: str) -> str:
    """The id of a question that was answered."""
    response = post(server, "/v1/ask", ASK | {"conversation_id": conversation})
    assert response.status_code == 200, response.text
    return response.headers["x-request-id"]


def sign_in(server: PreloadedServer) -> None:
    with httpx.Client(base_url=server.http.base_url, timeout=LONGEST_S, trust_env=False) as browser:
        opened = browser.post("/v1/session", headers={"Authorization": server.http.headers["Authorization"]})
        assert opened.status_code == 201, opened.text
        assert browser.get("/v1/session").status_code == 200, "it lasts"


def limited_key(server: PreloadedServer) -> dict[str, str]:
    """The header of a new key that may make two requests a minute."""
    made = post(server, "/v1/admin/keys", {"name": "limited", "role": "reader", "expires_in": 1800}).json()
    limits = server.http.put(f"/v1/admin/limits/keys/{made['id']}", json={"requests_per_minute": 2})
    assert limits.status_code == 200, limits.text
    return {"Authorization": f"Bearer {made['secret']}"}


def assert_works(server: PreloadedServer, number: int, conversation: str) -> str:
    """Whatever the clock says: documents, questions, sessions, keys, limits, lists and files do what they promise."""
    marker = f"harbour{number}"
    server.upload(f"{marker}.txt", f"{marker}: the keeper counted forty ships.")
    assert [one["status"] for one in server.settled(seconds=LONGEST_S)] == ["indexed"] * (number + 1)
    found = post(server, "/v1/search", {"query": marker, "mode": "lexical"}).json()["data"]
    assert found[0]["text"].startswith(marker)
    request_id = asked(server, conversation)
    listed = server.http.get("/v1/admin/usage/events", params={"start_time": 0}).json()["data"]
    assert request_id in {line["request_id"] for line in listed}, "an answer is listed at once"
    file = server.http.get("/v1/admin/usage/events", params={"start_time": 0}, headers={"Accept": "text/csv"})
    assert request_id in file.text, "and exported"
    sign_in(server)
    headers = limited_key(server)
    answers = [post(server, "/v1/search", {"query": marker}, **headers) for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 429]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 61, "a minute, and the bucket of a tenth of a second"
    once = [post(server, "/v1/conversations", {"title": marker}, **{"Idempotency-Key": marker}) for _ in range(2)]
    assert [one.json()["id"] for one in once] == [once[0].json()["id"]] * 2
    return request_id


def assert_no_duration_is_negative(server: PreloadedServer) -> None:
    for query in DURATIONS:
        found = [value for (value,) in rows(server, query)]
        assert found, query
        assert min(found) >= 0, (query, min(found))


def test_f5_a_server_whose_clock_jumps_works_on_and_keeps_its_books_in_order(
    moved: tuple[PreloadedServer, MovableClock],
) -> None:
    server, clock = moved
    server.launch()
    set_prices(server, millionths=500)
    set_budgets(server)
    conversation = post(server, "/v1/conversations", {"title": "Ships"}).json()["id"]
    order = [assert_works(server, 0, conversation)]

    for number, (seconds, flutter) in enumerate(JUMPS.values(), start=1):
        clock.move(seconds, flutter=flutter)
        order.append(assert_works(server, number, conversation))

    settled = dict(rows(server, "SELECT request_id, max(settled_at) FROM usage_event GROUP BY request_id"))
    assert all(settled[one] < settled[other] for one, other in pairwise(order)), "settled in their order"
    assert_no_duration_is_negative(server)
    look(server, Accounts())


def test_f5_a_server_that_starts_with_an_earlier_clock_goes_on_with_what_was_left(
    moved: tuple[PreloadedServer, MovableClock],
) -> None:
    server, clock = moved
    server.launch()
    set_prices(server, millionths=500)
    set_budgets(server)
    clock.move(DAY)
    conversation = post(server, "/v1/conversations", {"title": "Ships"}).json()["id"]
    asked(server, conversation)
    sign_in(server)
    server.upload("first.txt", "first: the keeper counted forty ships.", metadata='{"year": 2026}')
    with server.http.stream("POST", "/v1/ask", json=ASK | {"stream": True}) as response:
        next(response.iter_lines())
        server.upload("second.txt", "second: the keeper counted fifty ships.", metadata='{"year": 2026}')
        server.end(gently=False)

    clock.move(0.0)
    server.launch()

    assert [one["status"] for one in server.settled(seconds=LONGEST_S)] == ["indexed"] * 2
    asked(server, conversation)
    look(server, Accounts())
    gone = post(server, "/v1/documents/delete", {"filter": {"year": 2026}}).json()
    assert gone["documents"] == 2, "a deletion by filter reaches what was uploaded by a clock that was ahead"
    assert rows(server, "SELECT count(*) FROM usage_event WHERE settled_at < accepted_at") == [(0,)]
