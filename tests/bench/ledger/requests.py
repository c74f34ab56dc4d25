"""`python -m tests.bench.ledger.requests`: does every count of a request agree, for very many requests?

Requests go through the real HTTP application in this process, a share of them left or cancelled at random points.
Compared are the prompt as it was sent to the engine, as the tokenizer counts it; the engine's counters; the bill in
the response; the ledger's row; and the administrator's report. `--real` asks the configured language model.
"""

import argparse
import asyncio
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rich.console import Console

from app.answering.question import AnswerDefaults
from app.api.application import create_app
from app.db.tables.ledger import usage_event
from app.server.state import State
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine, Observer, Stream, Tokenizer
from generation.types import EngineStats, GenerationRequest, ModelInfo
from tests.bench.ledger.client import Client
from tests.faults.metered import metered, scripted

_LIMITS = AnswerDefaults(max_context_tokens=2000, max_output_tokens=64, min_evidence=0.3, max_waiting=64)
_CANCELLED = 0.3


class RecordingEngine:
    """A `ports.Engine` that notes how long each prompt is that another is given."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, *, recount: bool) -> None:
        """`recount`: by the tokenizer, from the text of the ids; else the ids are counted."""
        self._engine = engine
        self._tokenizer = tokenizer
        self._recount = recount
        self.sent: dict[str, int] = {}

    @property
    def info(self) -> ModelInfo:
        return self._engine.info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        stream = self._engine.submit(request, observer=observer)
        prompt = request.prompt
        self.sent[request.id] = self._tokenizer.count(self._tokenizer.decode(prompt)) if self._recount else len(prompt)
        return stream

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        return self._engine.cached_tokens(prompt, salt=salt)

    def stats(self) -> EngineStats:
        return self._engine.stats()

    def alive(self) -> bool:
        return self._engine.alive()

    def close(self) -> None:
        self._engine.close()


@dataclass(slots=True)
class Figures:
    """What was asked, how it ended, and each count that differs from another."""

    requests: int = 0
    bills: int = 0
    seconds: float = 0.0
    acts: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    tokens: int = 0
    differences: Counter[str] = field(default_factory=Counter)

    def compare(self, name: str, one: object, other: object) -> None:
        """Count a difference; a comparison that holds counts as 0 of them, so that it is known to have been made."""
        self.differences[name] += one != other


async def run(state: State, engine: RecordingEngine, *, requests: int, clients: int, seed: int) -> Figures:
    """Ask `requests` questions, `clients` at once, and compare all counts when nothing runs any more."""
    app = create_app(lambda: nullcontext(state), version="0")
    figures, chance, began = Figures(requests=requests), random.Random(seed), time.time()
    bills: dict[str, dict[str, Any]] = {}
    left = iter(range(requests))

    async def work(client: Client) -> None:
        for _ in left:
            body = {
                "question": "How many ships " + "and boats " * chance.randrange(200) + "were counted?",
                "max_output_tokens": chance.randrange(1, 64),
                "on_no_evidence": "answer",
                "stream": chance.random() < 0.6,
            }
            act, point = "read", chance.randrange(1, 30)
            if chance.random() < _CANCELLED:
                act = chance.choice(["leave_early", "leave", "cancel"])
                body["stream"] = body["stream"] or act != "leave_early"
            reply = await client.ask(
                body,
                leave_in=0.2 * chance.random() if act == "leave_early" else None,
                leave_after=point if act == "leave" else None,
                cancel_after=point if act == "cancel" else None,
            )
            figures.acts[act] += 1
            figures.statuses[f"http_{reply.status}"] += 1
            if reply.usage is not None:
                bills[reply.request_id] = reply.usage

    async with app.router.lifespan_context(app):
        client = Client(app)
        started = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(clients)))
        await asyncio.to_thread(_until_it_rests, state, engine)
        figures.seconds = time.perf_counter() - started
        figures.bills = len(bills)
        await asyncio.to_thread(_compare, state, engine, bills, figures)
        await _compare_reports(client, figures, since=int(began))
    return figures


def _until_it_rests(state: State, engine: RecordingEngine) -> None:
    still = sa.select(sa.func.count()).where(usage_event.c.status == "reserved")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        stats = engine.stats()
        with state.database.read() as connection:
            if not stats.running and not stats.waiting and not connection.execute(still).scalar_one():
                return
        time.sleep(0.05)
    raise AssertionError("calls are still open")


def _compare(state: State, engine: RecordingEngine, bills: dict[str, dict[str, Any]], figures: Figures) -> None:
    with state.database.read() as connection:
        rows = connection.execute(sa.select(usage_event).where(usage_event.c.operation == "chat")).all()
    by_request = {row.request_id: row for row in rows}
    figures.rows = len(rows)
    figures.compare("one row a request", len(by_request), len(rows))
    accepted = {row.request_id for row in rows if row.request_id in engine.sent}
    figures.compare("prompts sent and rows", accepted, set(engine.sent))
    for row in rows:
        figures.statuses[row.status] += 1
        figures.tokens += row.input_tokens + row.output_tokens
        parts = row.tok_system + row.tok_history + row.tok_context + row.tok_question + row.tok_template
        figures.compare("components and input", parts, row.input_tokens)
        if row.input_tokens or row.status == "completed":  # else it ended before any of it was read
            figures.compare("prompt as sent and row", engine.sent.get(row.request_id), row.input_tokens)
    for request_id, bill in bills.items():
        row = by_request[request_id]
        figures.compare("bill and row: prompt", bill["prompt_tokens"], row.input_tokens)
        figures.compare("bill and row: completion", bill["completion_tokens"], row.output_tokens)
        cached = bill["prompt_tokens_details"]["cached_tokens"]
        figures.compare("bill and row: cached", cached, row.input_cached_tokens)
    stats = engine.stats()
    fresh = sum(row.input_tokens - row.input_cached_tokens for row in rows)
    figures.compare("engine and rows: prefill", stats.prompt_tokens, fresh)
    figures.compare("engine and rows: decode", stats.decode_tokens, sum(row.output_tokens for row in rows))
    figures.compare("engine and prompts sent: requests", stats.requests, len(engine.sent))


async def _compare_reports(client: Client, figures: Figures, *, since: int) -> None:
    page = await client.get(
        "/v1/admin/usage/completions", f"start_time={since}&end_time={int(time.time()) + 1}&bucket_width=1d"
    )
    results = [result for bucket in page["data"] for result in bucket["results"]]
    total = sum(result["input_tokens"] + result["output_tokens"] for result in results)
    figures.compare("report and rows: tokens", total, figures.tokens)
    figures.compare("report and rows: calls", sum(result["num_model_requests"] for result in results), figures.rows)
    found = await client.get("/v1/admin/usage/reconciliation", "start_time=0")
    figures.compare("reconciliation", found["ok"], True)


def stub(
    data_dir: Path, *, watched: Callable[[Ledger], Ledger] = lambda ledger: ledger
) -> tuple[AbstractContextManager[State], RecordingEngine]:
    """The application over a model that writes letters, 2 ms a step: clients come to leave in the middle."""
    from tests.generation.fakes import LetterTokenizer

    engine = RecordingEngine(scripted(step_seconds=0.002), LetterTokenizer(), recount=True)
    return metered(data_dir, engine=engine, limits=_LIMITS, watched=watched), engine


def real(
    data_dir: Path, *, watched: Callable[[Ledger], Ledger] = lambda ledger: ledger
) -> tuple[AbstractContextManager[State], RecordingEngine]:
    """The application over the language model the settings name."""
    from app.models.folder import resolve
    from app.models.loading import engine_config
    from app.settings import load_settings
    from generation.engine import LocalEngine
    from generation.tokenizer import ChatTokenizer

    settings = load_settings()
    generator = resolve(settings.generator, models_dir=settings.models_dir)
    tokenizer = ChatTokenizer.load(generator)
    config = engine_config(settings, generator=generator)
    engine = RecordingEngine(LocalEngine.load(config, tokenizer), tokenizer, recount=False)
    return metered(data_dir, engine=engine, tokenizer=tokenizer, limits=_LIMITS, watched=watched), engine


def main() -> None:
    """Ask, compare, tell; the exit status is 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger.requests", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--real", action="store_true", help="the configured language model in the stub's place")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help="file for the figures")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    serving, engine = (real if chosen.real else stub)(folder / "data")
    with serving as state:
        figures = asyncio.run(run(state, engine, requests=chosen.requests, clients=chosen.clients, seed=chosen.seed))
    shutil.rmtree(folder)
    told = {
        "model": engine.info.model,
        "requests": figures.requests,
        "seconds": round(figures.seconds, 1),
        "acts": dict(figures.acts),
        "bills_read": figures.bills,
        "rows": figures.rows,
        "tokens": figures.tokens,
        "statuses": dict(figures.statuses),
        "differences": dict(figures.differences),
    }
    Console().print_json(json.dumps(told))
    if chosen.out:
        chosen.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(1 if any(figures.differences.values()) else 0)


if __name__ == "__main__":
    main()
