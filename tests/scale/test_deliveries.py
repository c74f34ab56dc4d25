"""Real processes deliver budget alerts to a webhook: each once, also one that a process had taken which was killed."""

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sqlalchemy as sa

from app.db.tables.budgets import budget, budget_alert
from tests.faults.forked import KillPoint
from tests.scale.rig import Rig, eventually


class Webhook:
    """A receiver on this machine that counts the ids of what it takes."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:  # noqa: N805 - as the library names it
                body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
                with lock:
                    self.taken[body["id"]] += 1
                handler.send_response(204)
                handler.end_headers()

            def log_message(handler, *_: object) -> None:  # noqa: N805
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook()
    yield webhook
    webhook.close()


def fire(rig: Rig, webhook: Webhook, count: int) -> Counter[str]:
    """Alerts of one budget that are due; the ids that their bodies have."""
    values = {
        "budget_id": "b", "tenant_id": "default", "scope_type": "tenant", "scope_id": "default", "unit": "tokens",
        "limit_value": 9, "period": "minute", "enforcement": "hard", "webhook_url": f"http://{webhook.host}/",
        "created_by": "u", "created_at": 0,
    }  # fmt: skip
    fired = {"budget_id": "b", "series": 1, "percent": 80, "reason": "spent", "used": 8, "limit_value": 9}
    times = {"fired_at": 0, "next_attempt_at": 0}
    with rig.database.write() as connection:
        connection.execute(sa.insert(budget).values(values))
        connection.execute(sa.insert(budget_alert), [{**fired, **times, "window_start": each} for each in range(count)])
    return Counter(f"b:1:{each}:80" for each in range(count))


def waiting(rig: Rig) -> int:
    count = sa.select(sa.func.count()).where(budget_alert.c.delivery == "waiting")
    with rig.database.read() as connection:
        return connection.execute(count).scalar_one()


def test_four_processes_deliver_each_of_300_alerts_once(rig: Rig, webhook: Webhook) -> None:
    for _ in range(4):
        rig.member("api", webhook_hosts=webhook.host).start()

    expected = fire(rig, webhook, 300)
    eventually(lambda: waiting(rig) == 0, "an alert waits")

    assert webhook.taken == expected


def test_what_a_killed_process_had_taken_another_delivers_once_it_is_buried(rig: Rig, webhook: Webhook) -> None:
    expected = fire(rig, webhook, 3)
    killed = rig.member("api", webhook_hosts=webhook.host)
    killed.start(stop_at=KillPoint("app.db.deliveries:Deliveries.take", "return", sent=signal.SIGSTOP))
    killed.stopped()
    killed.server.signal(signal.SIGKILL)
    other = rig.member("api", webhook_hosts=webhook.host).start()

    eventually(lambda: waiting(rig) == 1, "the others are not delivered")
    rig.pass_time(other, seconds=12)
    assert waiting(rig) == 1, "it may only be slow"
    rig.pass_time(other, seconds=6)
    eventually(lambda: waiting(rig) == 0, "nobody delivers what it had taken")

    assert webhook.taken == expected
