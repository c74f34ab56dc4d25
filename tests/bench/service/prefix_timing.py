"""`python -m tests.bench.service.prefix_timing`: does the time of an answer tell what another tenant asked?

The real application with its default models, in process. Two tenants have the same documents. In each trial the victim
asks about one; then the attacker asks the very same of it ("seen") and of one nobody has asked about ("unseen"), in
random order, and last what it has just asked itself ("own"). Whoever guesses from one time which was which is right
with probability AUC (Mann and Whitney 1947): one half across tenants, near one within, or the cache is off and the
first half proves nothing. The same with `/v1/search`, whose questions' vectors are remembered. Intervals are bootstrap
percentiles over trials (Efron 1979).
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.server.bootstrap import build
from app.server.state import State
from app.settings import load_settings
from app.types import Role
from tests.app.api.bills import answering
from tests.server import ADMIN_KEY

_CARGO = ("barley", "copper", "linen", "marble", "salt", "timber", "wool", "amber", "paper", "glass")
_PLACES = ("Aarhus", "Bergen", "Cork", "Dover", "Emden", "Faro", "Genoa", "Hull", "Izmir", "Kiel", "Lisbon", "Malmo")
_LEGS = 6  # of a voyage: as much text as a passage of a real document has
_NAMES = ("Albatross", "Bittern", "Curlew", "Dunlin", "Egret", "Fulmar", "Gannet", "Heron", "Ibis", "Kestrel")

Times = npt.NDArray[np.float64]
Headers = dict[str, str]


@dataclass(slots=True)
class Trials:
    """One number a trial of each kind."""

    seen: list[float] = field(default_factory=list)
    unseen: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    def told(self, draw: np.random.Generator) -> dict[str, Any]:
        """Medians and ranges, and both AUCs with 95 % intervals."""
        seen, unseen, own = (np.array(times) for times in (self.seen, self.unseen, self.own))
        kinds = {"seen": seen, "unseen": unseen, "own": own}
        return {
            "trials": len(seen),
            "median": {kind: round(float(np.median(times)), 2) for kind, times in kinds.items()},
            "range": {
                kind: (round(float(times.min()), 2), round(float(times.max()), 2)) for kind, times in kinds.items()
            },
            "auc_across": interval(seen, unseen, draw),
            "auc_within": interval(own, unseen, draw),
        }


def auc(quick: Times, slow: Times) -> float:
    """The probability that a draw of `quick` is below one of `slow`, ties counting half."""
    below = (quick[:, None] < slow[None, :]).mean()
    return float(below + (quick[:, None] == slow[None, :]).mean() / 2)


def interval(quick: Times, slow: Times, draw: np.random.Generator, *, resamples: int = 1000) -> dict[str, float]:
    """The AUC of paired trials, and the percentiles of its resamples by trial."""
    trials = [draw.integers(0, len(quick), len(quick)) for _ in range(resamples)]
    again = [auc(quick[chosen], slow[chosen]) for chosen in trials]
    low, high = np.percentile(again, [2.5, 97.5])
    return {"auc": round(auc(quick, slow), 3), "low": round(float(low), 3), "high": round(float(high), 3)}


def ship(number: int) -> tuple[str, str]:
    """A document of about 400 tokens, and a question it answers; no two begin alike."""
    draw = random.Random(number)
    name = f"{draw.choice(_NAMES)} {number}"
    legs = []
    for _ in range(_LEGS):
        place, cargo, crates = draw.choice(_PLACES), draw.choice(_CARGO), draw.randrange(20, 900)
        legs.append(
            f"{name} left {draw.choice(_PLACES)} with {crates} crates of {cargo}. The ship reached the harbour of "
            f"{place} after {draw.randrange(3, 60)} days, and its master, {draw.choice(_NAMES)[:4]}son, sold the "
            f"{cargo} to a merchant from {draw.choice(_PLACES)} for {draw.randrange(100, 9000)} guilders."
        )
    return " ".join(legs), f"Which harbour did {name} reach?"


class Tenant:
    """A key of one, and its copies of the documents."""

    def __init__(self, client: TestClient, state: State, name: str) -> None:
        _, secret = state.access.keys.create(tenant_id=name, user_id=name, name=name, role=Role.ADMIN)
        self._client, self._headers = client, {"Authorization": f"Bearer {secret}"}
        self._documents: dict[int, str] = {}

    def upload(self, numbers: range) -> None:
        """Its copies of the ships' documents, indexed when this returns."""
        for number in numbers:
            body = {"text": ship(number)[0], "filename": f"{number}.txt"}
            made = self._client.post("/v1/documents", json=body, headers=self._headers).json()
            self._documents[number] = made["id"]
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            waiting = self._client.get("/v1/jobs?limit=1&status=queued", headers=self._headers).json()["data"]
            running = self._client.get("/v1/jobs?limit=1&status=running", headers=self._headers).json()["data"]
            if not waiting and not running:
                return
            time.sleep(0.1)
        raise AssertionError("the documents are not indexed")

    def ask(self, number: int) -> dict[str, float] | None:
        """Milliseconds to the first token by the client's clock and the server's; prompt tokens; cached ones of them.

        None where nothing was generated: a question that is refused before the engine measures nothing.
        """
        body = {
            "question": ship(number)[1],
            "document_ids": [self._documents[number]],
            "max_output_tokens": 1,
            "temperature": 0.0,
        }
        began = time.perf_counter()
        response = self._client.post("/v1/ask", json=body, headers=self._headers)
        took = 1000 * (time.perf_counter() - began)
        assert response.status_code == 200, response.text
        answer = response.json()
        if not answer["usage"]["completion_tokens"]:
            return None
        return {
            "client_ms": took,
            "first_token_ms": float(answer["timings_ms"]["first_token"]),
            "prompt_tokens": float(answering(answer["usage"])["prompt_tokens"]),
            "cached_tokens": float(answering(answer["usage"])["cached_tokens"]),
        }

    def search(self, question: str) -> dict[str, float]:
        """Milliseconds by the client's clock, and the tokens it was charged."""
        began = time.perf_counter()
        response = self._client.post("/v1/search", json={"query": question}, headers=self._headers)
        took = 1000 * (time.perf_counter() - began)
        assert response.status_code == 200, response.text
        return {"client_ms": took, "embedding_tokens": float(response.json()["usage"]["embedding_tokens"])}


def ask_trials(victim: Tenant, attacker: Tenant, count: int, draw: random.Random) -> dict[str, Trials]:
    """Trials with two fresh documents each, by what was measured; fewer than `count` where one was refused."""
    found: defaultdict[str, Trials] = defaultdict(Trials)
    for tenant in (victim, attacker):
        tenant.ask(0)  # everybody's own instructions are cached from here on
    for trial in range(count):
        numbers = {"seen": 2 * trial + 1, "unseen": 2 * trial + 2}
        if victim.ask(numbers["seen"]) is None:
            continue
        order = draw.sample(list(numbers), 2)
        asked = [(kind, attacker.ask(numbers[kind])) for kind in order]
        asked.append(("own", attacker.ask(numbers[order[0]])))  # not the one asked last: one answer lies between
        measured = [(kind, figures) for kind, figures in asked if figures is not None]
        if len(measured) == len(asked):
            for kind, figures in measured:
                _note(found, kind, figures)
        if (trial + 1) % 10 == 0:
            print(f"{trial + 1} of {count} trials", file=sys.stderr, flush=True)
    return found


def search_trials(victim: Tenant, attacker: Tenant, count: int, draw: random.Random) -> dict[str, Trials]:
    """Trials with two fresh questions each, by what was measured."""
    found: defaultdict[str, Trials] = defaultdict(Trials)
    for trial in range(count):
        # told apart by nothing but who asked
        asked = {kind: f"{ship(trial)[1]} {draw.getrandbits(40):010x}" for kind in ("seen", "unseen")}
        victim.search(asked["seen"])
        order = draw.sample(list(asked), 2)
        for kind in order:
            _note(found, kind, attacker.search(asked[kind]))
        _note(found, "own", attacker.search(asked[order[0]]))
    return found


def _note(found: defaultdict[str, Trials], kind: str, figures: dict[str, float]) -> None:
    for name, figure in figures.items():
        getattr(found[name], kind).append(figure)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.prefix_timing", description=__doc__)
    parser.add_argument("--asks", type=int, default=200, help="trials of /v1/ask")
    parser.add_argument("--searches", type=int, default=1000, help="trials of /v1/search")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    draw, resampling, told = random.Random(chosen.seed), np.random.default_rng(chosen.seed), {}
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings().model_copy(update={"data_dir": Path(folder) / "data", "database_url": ""})
        with build(settings) as state:
            app = create_app(lambda: nullcontext(state), version="0")
            with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as client:
                victim, attacker = Tenant(client, state, "victim"), Tenant(client, state, "attacker")
                for tenant in (victim, attacker):
                    tenant.upload(range(2 * chosen.asks + 1))
                searched = search_trials(victim, attacker, chosen.searches, draw)
                told["search"] = {name: trials.told(resampling) for name, trials in searched.items()}
                print(json.dumps(told["search"]), flush=True)
                asked = ask_trials(victim, attacker, chosen.asks, draw)
                told["ask"] = {name: trials.told(resampling) for name, trials in asked.items()}
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
