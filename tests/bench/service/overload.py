"""`python -m tests.bench.service.overload`: ten times more requests than the service answers; what becomes of them?

locust asks from a process of its own, over loopback. First as many clients ask as keep every place taken: the peak.
Then requests come at ten times that rate, whoever is answered or not, from four tenants of whom one sends 70 %; then
again as at the peak. The server is a process with the engine whole over a scripted model that takes a fixed time for
a step, so that its capacity is known and the processor is not what limits it; `--real` takes `footnote serve` with
the default models.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.answering.question import AnswerDefaults
from app.server.process import freeze_loaded_objects
from app.server.state import State
from tests.faults.forked import ForkedServer
from tests.faults.metered import metered, scripted
from tests.server import Server

_USERS = Path(__file__).with_name("overload_users.py")
_TENANTS = ("loud", "calm", "quiet", "still")
_LOUD = 0.7  # of all requests, the rest are the others' in equal parts
_PATIENT = 8.0  # seconds between two requests of one client, many times more of whom there are than places
_STARTING_S = 20.0  # of a phase, until caches, threads and locust's clients are there; not counted
_STEP_S = 0.02
_KINDS = ("stream", "ask", "chat")  # those that wait for the engine
_TEXT = "The keeper of the light house counted forty ships in the month of March of the year {year}. " * 3
_HELD = ("footnote_engine_running", "footnote_engine_waiting", "footnote_ledger_reserved", "footnote_settlements_wait")
_LAG = re.compile(r'footnote_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, and what came of it; `whole`: it ended as its protocol says it ends."""

    kind: str
    tenant: str
    status: int
    begun: float
    seconds: float
    whole: bool
    reason: str


@contextmanager
def paced(data_dir: Path) -> Iterator[State]:
    """The application over a scripted model of `_STEP_S` a step."""
    limits = AnswerDefaults(max_context_tokens=2000, max_output_tokens=64, min_evidence=-1.0, max_waiting=64)
    with metered(data_dir, engine=scripted(step_seconds=_STEP_S), limits=limits) as state:
        freeze_loaded_objects()  # as `app.server.model_loading` does
        yield state


class Watch:
    """Memory and open files of a process, looked at every half second until it is closed."""

    def __init__(self, pid: int) -> None:
        self._pid, self._over = pid, threading.Event()
        self.resident_mb: list[float] = []
        self.files: list[int] = []
        self._began, self._cpu = time.perf_counter(), self._cpu_s()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def told(self) -> dict[str, Any]:
        """Ends the watch: MB at the start, at most and at the end, cores taken, most open files."""
        cores = (self._cpu_s() - self._cpu) / (time.perf_counter() - self._began)
        self._over.set()
        self._thread.join()
        return {
            "resident_mb": [self.resident_mb[0], max(self.resident_mb), self.resident_mb[-1]],
            "server_cores": round(cores, 2),
            "most_open_files": max(self.files),
        }

    def _look(self) -> None:
        while True:
            pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
            self.resident_mb.append(round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1))
            self.files.append(sum(1 for _ in Path(f"/proc/{self._pid}/fd").iterdir()))
            if self._over.wait(0.5):
                return

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Overload:
    """A server, its tenants, and loads on it one after the other."""

    def __init__(self, server: ForkedServer | Server, folder: Path, *, length: int) -> None:
        self._server, self._folder, self._length = server, folder, length
        self._secrets = {tenant: self._settle_in(tenant) for tenant in _TENANTS}

    def phase(self, *, clients: int, seconds: float, every: float = 0.0) -> dict[str, Any]:
        """What came of so many clients' requests; each asks `every` so many seconds, or when it has its answer."""
        calm = [self._secrets[tenant] for tenant in _TENANTS[1:]]
        keys = [self._secrets["loud"]] * round(len(calm) * _LOUD / (1 - _LOUD)) + calm
        out = self._folder / "sent.jsonl"
        plan = {"keys": keys, "every": every, "length": self._length, "out": str(out)}
        lag, watch, began = self._lag(), Watch(self._server.pid), time.time()
        spent = self._locust(plan, clients=clients, seconds=_STARTING_S + seconds)
        found, over = watch.told(), self._lag()
        names = {number: "loud" if key == self._secrets["loud"] else "others" for number, key in enumerate(keys)}
        sent = [_sent(line, names) for line in out.read_text(encoding="utf-8").splitlines()]
        counted = [one for one in sent if _STARTING_S <= one.begun - began + one.seconds < _STARTING_S + seconds]
        return {
            "clients": clients,
            **_told(counted, seconds),
            **found,
            "load_generator_cores": spent,
            "loop_lag_ms": {share: _within(lag, over, share) for share in (0.5, 0.99)},
        }

    def books(self) -> dict[str, Any]:
        """What is still held thirty seconds after the last request at most, and whether the ledger agrees."""
        deadline = time.monotonic() + 30
        while any((held := self._held()).values()) and time.monotonic() < deadline:
            time.sleep(0.2)
        reconciled = _ok(self._server.http.get("/v1/admin/usage/reconciliation", timeout=300))
        return {**held, "books_that_disagree": [check for check in reconciled["checks"] if not check["ok"]]}

    def _held(self) -> dict[str, int]:
        lines = dict(line.rsplit(" ", 1) for line in self._metrics().splitlines() if line.startswith(_HELD))
        return {name: int(float(value)) for name, value in lines.items()}

    def _settle_in(self, tenant: str) -> str:
        http = self._server.http
        _ok(http.post("/v1/admin/tenants", json={"id": tenant, "name": tenant}))
        secret = str(_ok(http.post(f"/v1/admin/tenants/{tenant}/keys", json={"role": "admin"}))["secret"])
        for year in range(2000, 2020):
            body = {"text": _TEXT.format(year=year), "filename": f"{year}.txt", "wait": 30}
            document = _ok(http.post("/v1/documents", json=body, headers={"Authorization": f"Bearer {secret}"}))
            assert document["status"] == "indexed", document
        return secret

    def _locust(self, plan: dict[str, Any], *, clients: int, seconds: float) -> float:
        """Cores it took."""
        command = [sys.executable, "-m", "locust", "-f", str(_USERS), "--headless", "--only-summary", "--loglevel"]
        command += ["ERROR", "-u", str(clients), "-r", str(max(1, clients)), "-t", f"{seconds:.0f}s", "-H"]
        command += [str(self._server.http.base_url), "--stop-timeout", "60"]
        cpu, began = os.times(), time.perf_counter()
        environment = {**os.environ, "OVERLOAD": json.dumps(plan), "PYTHONWARNINGS": "ignore"}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = os.times()
        spent = after.children_user + after.children_system - cpu.children_user - cpu.children_system
        return round(spent / (time.perf_counter() - began), 2)

    def _lag(self) -> dict[float, float]:
        found = self._metrics()
        return {float(bound): float(count) for bound, count in _LAG.findall(found)}

    def _metrics(self) -> str:
        return self._server.http.get("/metrics").text


def _ok(response: httpx.Response) -> dict[str, Any]:
    assert response.is_success, response.text
    body: dict[str, Any] = response.json()
    return body


def _sent(line: str, names: dict[int, str]) -> Sent:
    kind, key, *rest = json.loads(line)
    return Sent(kind, names[key], *rest)


def _told(sent: list[Sent], seconds: float) -> dict[str, Any]:
    good = [one for one in sent if one.status == 200 and one.kind in _KINDS]
    refused = [one.seconds for one in sent if one.status in {429, 503}]
    shares = {}
    for tenant in ("loud", "others"):
        its = [one for one in sent if one.tenant == tenant and one.kind in _KINDS]
        answered = sum(one.status == 200 for one in its)
        shares[tenant] = {"sent_per_s": round(len(its) / seconds, 1), "answered_per_s": round(answered / seconds, 2)}
    return {
        "sent_per_s": round(len(sent) / seconds, 1),
        "answers_per_s": round(len(good) / seconds, 2),
        "answer_s": {"p50": _at([one.seconds for one in good], 0.5), "p99": _at([one.seconds for one in good], 0.99)},
        "refused": len(refused),
        "refused_ms": {name: round(1000 * _at(refused, share), 1) for name, share in _SHARES.items()},
        "statuses": dict(Counter(f"{one.status} {one.reason}".strip() for one in sent)),
        "not_ended_well": sum(not one.whole for one in sent),
        "tenants": shares,
    }


_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def _at(seconds: list[float], share: float) -> float:
    ordered = sorted(seconds)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4) if ordered else 0.0


def _within(before: dict[float, float], after: dict[float, float], share: float) -> float:
    """The bucket's bound, in milliseconds, within which that share of the beats came."""
    total = after[float("inf")] - before[float("inf")]
    for bound in sorted(after):
        if after[bound] - before[bound] >= share * total:
            return bound * 1000
    raise AssertionError("a histogram ends with infinity")


def main() -> None:
    """Print the figures as JSON; the exit status is 1 where a stream did not end as it must, or the books differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of the overload; the peaks take a fifth each")
    parser.add_argument("--times", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=16, help="that keep every place taken")
    parser.add_argument("--length", type=int, default=40, help="tokens of an answer")
    parser.add_argument("--real", action="store_true", help="the default models")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Server(folder / "data", answers="generated") if chosen.real else ForkedServer(folder / "data", paced)
        try:
            server.start()
            overload, told = Overload(server, folder, length=chosen.length), {}
            fifth = partial(overload.phase, clients=chosen.clients, seconds=max(10.0, chosen.seconds / 5))
            told["peak"] = fifth()
            rate = chosen.times * told["peak"]["answers_per_s"]
            told["overload"] = overload.phase(clients=round(rate * _PATIENT), seconds=chosen.seconds, every=_PATIENT)
            told["peak again"] = fifth()
            told["books"] = overload.books()
        finally:
            server.close()
    print(json.dumps(told, indent=1))
    cut = sum(phase["not_ended_well"] for name, phase in told.items() if name != "books")
    raise SystemExit(1 if cut or any(told["books"].values()) else 0)


if __name__ == "__main__":
    main()
