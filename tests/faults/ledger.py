"""`python -m tests.faults.ledger`: kill a server at random moments of a mixed load, and look at its books each time.

Clients ask, streamed and not, leave streams at random points, cancel and upload, while prices change and budgets
hold. After every kill the server is started again, and everything it had told a client must be on the ledger.
"""

import argparse
import json
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from tests.faults.forked import ForkedServer
from tests.faults.metered import LETTERS, MODEL, metered

_CLIENTS = 6
_METERS = ("input", "cached_input", "output")
_MEASURES = (
    "num_calls",
    "num_unpriced",
    "tok_system",
    "tok_history",
    "tok_context",
    "tok_question",
    "tok_template",
    "input_tokens",
    "input_cached_tokens",
    "output_tokens",
    "output_delivered_tokens",
)


@dataclass(slots=True)
class Accounts:
    """What clients were told: bills by request, and requests that were begun, whose bill nobody read."""

    bills: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    acts: Counter[str] = field(default_factory=Counter)


class Spender:
    """One client. It stops when the server is gone, or when it is told to."""

    def __init__(self, server: ForkedServer, accounts: Accounts, *, seed: int, name: str) -> None:
        self._http = server.http
        self._server = server
        self._accounts = accounts
        self._chance = random.Random(seed)
        self._name = name
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        acts: tuple[tuple[float, Callable[[], None]], ...] = (
            (0.30, self._ask),
            (0.25, self._stream),
            (0.25, self._leave),
            (0.12, self._cancel),
            (0.08, self._upload),
        )
        try:
            while not self.stop.is_set():
                (act,) = self._chance.choices([act for _, act in acts], [weight for weight, _ in acts])
                act()
                self._accounts.acts[act.__name__.removeprefix("_")] += 1
        except httpx.TransportError:
            return  # it was killed
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            self.error = error

    def _body(self, *, stream: bool) -> dict[str, Any]:
        return {
            "question": f"How many ships {'and boats ' * self._chance.randrange(40)}were counted?",
            "max_output_tokens": self._chance.randrange(1, 60),
            "on_no_evidence": "answer",
            "stream": stream,
        }

    def _ask(self) -> None:
        response = self._http.post("/v1/ask", json=self._body(stream=False))
        assert response.status_code in {200, 503}, response.text
        if response.status_code == 200:
            self._accounts.bills[response.headers["x-request-id"]] = response.json()["usage"]

    def _stream(self, *, leave_after: int | None = None, cancel_after: int | None = None) -> None:
        deltas, event = 0, ""
        with self._http.stream("POST", "/v1/ask", json=self._body(stream=True)) as response:
            assert response.status_code in {200, 503}
            if response.status_code == 503:
                return
            request_id = response.headers["x-request-id"]
            self._accounts.begun.add(request_id)
            for line in response.iter_lines():
                if line.startswith("event: "):
                    event = line.removeprefix("event: ")
                    deltas += event == "delta"
                    if leave_after is not None and deltas >= leave_after:
                        return
                    if cancel_after is not None and deltas == cancel_after and event == "delta":
                        self._http.post(f"/v1/requests/{request_id}/cancel")  # 404 when it has just ended
                elif line.startswith("data: ") and event == "usage":
                    self._accounts.bills[request_id] = json.loads(line.removeprefix("data: "))

    def _leave(self) -> None:
        self._stream(leave_after=self._chance.randrange(20))

    def _cancel(self) -> None:
        self._stream(cancel_after=self._chance.randrange(1, 20))

    def _upload(self) -> None:
        marker = f"{self._name}{self._chance.randrange(1 << 40)}"
        self._server.upload(f"{marker}.txt", f"{marker}: the keeper counted forty ships.\n\nAnd then {marker} slept.")


def set_prices(server: ForkedServer, *, millionths: int) -> None:
    """From now on a million tokens of each meter cost so many millionths, cached ones half."""
    for meter in _METERS:
        price = millionths // 2 if meter == "cached_input" else millionths
        body = {"model": MODEL, "meter": meter, "price_per_million": f"0.{price:06d}"}
        response = server.http.post("/v1/admin/prices", json=body)
        assert response.status_code in {200, 201}, response.text


def set_budgets(server: ForkedServer) -> None:
    """A hard one in tokens, and a soft one in money, that every call of the tenant counts for."""
    for unit, limit in (("tokens", 10**12), ("cost", "1000000")):
        body = {
            "scope_type": "tenant",
            "scope_id": "default",
            "unit": unit,
            "limit": limit,
            "period": "day",
            "enforcement": "hard" if unit == "tokens" else "soft",
        }
        response = server.http.post("/v1/admin/budgets", json=body)
        assert response.status_code in {200, 201}, response.text


def look(server: ForkedServer, accounts: Accounts) -> dict[str, int]:
    """Hold the books of a server that rests to what clients were told; how many rows there are of what.

    Raises:
        AssertionError: Something is lost, open, or does not add up.
    """
    found = server.http.get("/v1/admin/usage/reconciliation", params={"start_time": 0}).json()
    assert found["ok"], [check for check in found["checks"] if not check["ok"]]
    with closing(sqlite3.connect(f"file:{server.data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")

        def rows(query: str) -> list[sqlite3.Row]:
            return connection.execute(query).fetchall()

        assert not rows("SELECT 1 FROM usage_event WHERE status = 'reserved'")
        assert not rows("SELECT 1 FROM budget_hold WHERE settled IS NULL")
        assert not rows("SELECT 1 FROM budget_window WHERE reserved <> 0")
        spent = "SELECT coalesce(sum(input_tokens + output_tokens), 0) AS n FROM usage_event"
        (held,) = rows(
            "SELECT coalesce(sum(w.settled), 0) AS n FROM budget_window w JOIN budget b USING (budget_id)"
            " WHERE b.unit = 'tokens'"
        )
        assert held["n"] == rows(spent)[0]["n"], "every call counts for the tenant's budget"
        chats: dict[str, list[sqlite3.Row]] = {}
        for row in rows("SELECT * FROM usage_event WHERE operation = 'chat'"):
            chats.setdefault(row["request_id"], []).append(row)
        for request_id in accounts.begun:
            assert len(chats.get(request_id, ())) == 1, f"{request_id} was begun, and is not on the ledger once"
        for request_id, bill in accounts.bills.items():
            (row,) = chats[request_id]
            told = (bill["prompt_tokens"], bill["completion_tokens"], bill["prompt_tokens_details"]["cached_tokens"])
            calls = (
                "SELECT sum(input_tokens), sum(output_tokens), sum(input_cached_tokens) FROM usage_event"
                f" WHERE request_id = '{request_id}'"
            )
            assert told == tuple(rows(calls)[0]), request_id
            assert row["count_quality"] == "exact", request_id
        _assert_costs_are_exact(rows("SELECT * FROM usage_event"), rows("SELECT * FROM price"))
        counts = "count(*), sum(cost_pico IS NULL)"
        (raw,) = rows(f"SELECT {counts}, {', '.join(f'sum({name})' for name in _MEASURES[2:])} FROM usage_event")
        for table in ("usage_rollup_15m", "usage_rollup_day"):
            (summed,) = rows(f"SELECT {', '.join(f'sum({name})' for name in _MEASURES)} FROM {table}")
            assert tuple(summed) == tuple(raw), table
        statuses = rows("SELECT status, count(*) AS n FROM usage_event GROUP BY status")
        return {row["status"]: row["n"] for row in statuses}


def _assert_costs_are_exact(events: list[sqlite3.Row], prices: list[sqlite3.Row]) -> None:
    """Every row costs its tokens at the prices that were in force when it was accepted, to the last pico-unit."""
    for event in events:
        if event["operation"] != "chat":
            continue
        at = event["accepted_at"]
        rates = {
            price["meter"]: price["pico_per_token"]
            for price in prices
            if price["model_id"] == event["model_id"]
            and price["effective_from"] <= at
            and (price["effective_to"] is None or at < price["effective_to"])
        }
        fresh = event["input_tokens"] - event["input_cached_tokens"]
        cost = fresh * rates["input"] + event["input_cached_tokens"] * rates["cached_input"]
        assert event["cost_pico"] == cost + event["output_tokens"] * rates["output"], dict(event)


def killed_at_random(
    folder: Path, *, kills: int, seed: int, report: Callable[[int, Accounts, float], None]
) -> Accounts:
    """Kill one data dir's server again and again; `report` is told of each kill, and of the seconds of load before.

    Raises:
        AssertionError: An acknowledged row is lost or differs, or the books do not agree.
    """
    chance = random.Random(seed)
    server, accounts = ForkedServer(folder / "data", metered), Accounts()
    try:
        server.start()
        set_prices(server, millionths=7 * LETTERS)
        set_budgets(server)
        for number in range(kills):
            spenders = [
                Spender(server, accounts, seed=chance.randrange(1 << 30), name=f"client{index}x{number}x")
                for index in range(_CLIENTS)
            ]
            began = time.monotonic()
            for spender in spenders:
                spender.thread.start()
            time.sleep(0.1 + 0.2 * chance.random())
            set_prices(server, millionths=chance.randrange(1, 10**6))
            time.sleep(0.8 * chance.random())
            server.kill()
            seconds = time.monotonic() - began
            for spender in spenders:
                spender.stop.set()
                spender.thread.join(60)
            errors = [spender.error for spender in spenders if spender.error is not None]
            if errors:
                raise errors[0]
            server.start()
            server.settled()
            look(server, accounts)
            report(number, accounts, seconds)
        return accounts
    finally:
        server.close()


def main() -> None:
    """Kill, look, tell; ends with what was done, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.ledger", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help="file for the figures")
    chosen = parser.parse_args()
    console = Console()
    loads: list[float] = []

    def told(number: int, accounts: Accounts, seconds: float) -> None:
        loads.append(seconds)
        if number % 10 == 9:
            console.print(f"{number + 1} kills, {sum(accounts.acts.values())} acts, {len(accounts.bills)} bills")

    folder = Path(tempfile.mkdtemp())
    accounts = killed_at_random(folder, kills=chosen.kills, seed=chosen.seed, report=told)
    with closing(sqlite3.connect(folder / "data" / "footnote.db")) as connection:
        statuses = dict(connection.execute("SELECT status, count(*) FROM usage_event GROUP BY status").fetchall())
    shutil.rmtree(folder)
    figures = {
        "kills": chosen.kills,
        "seconds_of_load": round(sum(loads), 1),
        "acts": dict(accounts.acts),
        "acknowledged_bills": len(accounts.bills),
        "rows": statuses,
        "lost_or_different": 0,  # the first one ends the run with an error
    }
    console.print_json(json.dumps(figures))
    if chosen.out:
        chosen.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
