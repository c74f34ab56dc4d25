"""PostgreSQL restarts while requests are served."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import httpx2
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.db.session import Database
from app.db.tables.ledger import usage_event
from app.db.tables.rollups import usage_rollup_15m
from tests.faults.metered import metered, scripted
from tests.postgres import own_postgres
from tests.server import ADMIN_KEY

QUESTION = {"question": "How many ships?", "on_no_evidence": "answer", "max_output_tokens": 60}
ASKERS = 4
RECOVERED_SECONDS = 5.0


def wait_until(condition: Callable[[], bool], *, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def settled_once(database: Database, answers: list[httpx2.Response]) -> None:
    """Each answer has one row with its own numbers, and the sums hold each row once."""
    with database.read() as connection:
        rows = connection.execute(sa.select(usage_event).where(usage_event.c.operation == "chat")).all()
        tokens = sa.func.sum(usage_event.c.input_tokens + usage_event.c.output_tokens)
        spent, calls = connection.execute(sa.select(tokens, sa.func.count())).one()
        summed = sa.func.sum(usage_rollup_15m.c.input_tokens + usage_rollup_15m.c.output_tokens)
        total = connection.execute(sa.select(summed, sa.func.sum(usage_rollup_15m.c.num_calls))).one()
    assert tuple(map(int, total)) == (spent, calls)
    by_request = {row.request_id: row for row in rows}
    assert len(by_request) == len(rows)
    assert "reserved" not in {row.status for row in rows}
    for answer in answers:
        row, bill = by_request[answer.headers["x-request-id"]], answer.json()["usage"]
        assert (row.status, row.output_tokens) == ("completed", bill["completion_tokens"])


@pytest.mark.timeout(300)
def test_a10_a_restart_of_postgresql_ends_requests_or_lets_them_finish_and_settles_each_once(tmp_path: Path) -> None:
    postgres = own_postgres()
    with ThreadPoolExecutor(ASKERS) as threads:
        engine = scripted(step_seconds=0.005)
        with metered(tmp_path / "data", engine=engine, database_url=postgres.url) as state:
            app = create_app(lambda: nullcontext(state), version="0")
            with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as http:
                enough = threading.Event()
                responses: list[httpx2.Response] = []

                def ask() -> httpx2.Response:
                    responses.append(http.post("/v1/ask", json=QUESTION))
                    return responses[-1]

                def ask_on() -> None:
                    while not enough.is_set():
                        ask()

                asking = [threads.submit(ask_on) for _ in range(ASKERS)]
                try:
                    wait_until(lambda: len(responses) >= 2 * ASKERS)
                    postgres.stop()  # with a request of each asker under way
                    refused = ask()
                    postgres.start()
                    back = time.monotonic()
                    wait_until(lambda: ask().status_code == 200)
                    recovered = time.monotonic() - back
                finally:
                    enough.set()
                    for one in asking:
                        one.result()

                assert refused.status_code == 503
                assert recovered < RECOVERED_SECONDS
                assert {response.status_code for response in responses} == {200, 503}
                for response in responses:
                    if response.status_code == 503:
                        assert response.headers["content-type"] == "application/problem+json"
                        assert response.headers["retry-after"]
                journal = tmp_path / "data" / "settlements.jsonl"
                wait_until(lambda: not journal.exists() or not journal.read_text())
                settled_once(state.database, [response for response in responses if response.status_code == 200])
                assert http.get("/v1/admin/usage/reconciliation").json()["ok"]
