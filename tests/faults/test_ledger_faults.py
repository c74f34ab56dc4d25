"""Faults of the ledger: the database is away, the process is killed, a call is settled more than once."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.metering.meter import Meters
from app.answering.question import Message, Question
from app.answering.understanding.followup.model import Rewriter
from app.api.application import create_app
from app.db.session import Database
from app.db.tables.budgets import budget, budget_hold, budget_window
from app.db.tables.rollups import usage_rollup_15m
from app.types import Principal, Role, Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from app.usage.rollups.builder import RollupBuilder
from app.usage.rollups.rollups import Rollups
from app.usage.rollups.zones import zone_named
from generation.ports import Tokenizer
from generation.tokenizer import ChatTokenizer
from retrieval.types import Scope
from tests.app.answering.generating.test_summaries import SummarisingEngine
from tests.app.api.bills import answering
from tests.app.usage.samples import reservation
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.faults.forked import ForkedServer
from tests.faults.ledger import killed_at_random, look
from tests.faults.metered import metered, metered_slowly
from tests.generation.fakes import LetterTokenizer
from tests.generation.tiny import CHATML, tiny_tokenizer
from tests.server import ADMIN_KEY

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

QUESTION = {"question": "How many ships?", "on_no_evidence": "answer", "max_output_tokens": 60}
LONG = {**QUESTION, "max_output_tokens": 190, "stream": True}
FOLLOW_UP = Question(
    request_id="req_0",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.MEMBER),
    text="Who bought the plant?",
    scope=Scope(tenant_id="t"),
    history=(Message("user", "Was the plant sold?"), Message("assistant", "Yes, the plant was sold.")),
)
SHORT = {**LONG, "max_output_tokens": 30}  # ends before its first checkpoint, which would wait for the database too


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Nobody else can write the database meanwhile."""
    with closing(sqlite3.connect(data_dir / "footnote.db", isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def chat_row(data_dir: Path, request_id: str) -> dict[str, Any]:
    with closing(sqlite3.connect(f"file:{data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        query = "SELECT * FROM usage_event WHERE request_id = ? AND operation = 'chat'"
        (row,) = connection.execute(query, (request_id,)).fetchall()
        return dict(row)


def wait_until(condition: Callable[[], bool], *, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkedServer]:
    server = ForkedServer(tmp_path / "data", metered_slowly)
    yield server
    server.close()


def test_f4_a_database_that_is_away_when_a_call_begins_is_503_and_the_engine_never_hears_of_it(tmp_path: Path) -> None:
    with metered(tmp_path / "data") as state:
        app = create_app(lambda: nullcontext(state), version="0")
        with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as http:
            assert http.post("/v1/ask", json=QUESTION).status_code == 200
            with locked(tmp_path / "data"):
                refused = http.post("/v1/ask", json=QUESTION)

            assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
            assert refused.headers["retry-after"]
            assert state.serving.models is not None
            assert state.serving.models.engine.stats().requests == 1
            assert state.usage.ledger.usage(refused.headers["x-request-id"]) == ()
            assert http.post("/v1/ask", json=QUESTION).status_code == 200
            assert http.get("/v1/admin/usage/reconciliation").json()["ok"]


@contextmanager
def asked_and_locked_before_the_end(server: ForkedServer) -> Iterator[tuple[str, dict[str, Any]]]:
    """The request and its bill, which the client got while the database could not be written."""
    usage: dict[str, Any] = {}
    event, deltas = "", 0
    with server.http.stream("POST", "/v1/ask", json=SHORT) as response:
        lines = response.iter_lines()
        for line in lines:
            deltas += line == "event: delta"
            if deltas == 3:
                break
        with locked(server.data_dir):
            for line in lines:
                if line.startswith("event: "):
                    event = line.removeprefix("event: ")
                elif line.startswith("data: ") and event == "usage":
                    usage = json.loads(line.removeprefix("data: "))
            yield response.headers["x-request-id"], usage


@pytest.mark.timeout(300)
def test_f4_a_settlement_the_database_cannot_take_is_settled_later_exactly_once_also_after_a_kill(
    server: ForkedServer,
) -> None:
    """Invariant 10: what the client was told is on the disk before it is told."""
    server.start()
    journal = server.data_dir / "settlements.jsonl"
    bills: dict[str, dict[str, Any]] = {}
    for killed in (False, True):
        with asked_and_locked_before_the_end(server) as (request_id, usage):
            bills[request_id] = usage
            assert usage["completion_tokens"] == 30
            assert chat_row(server.data_dir, request_id)["status"] == "reserved"
            (line,) = journal.read_text().splitlines()
            assert json.loads(line)["event_id"].startswith(request_id)
            if killed:
                server.kill()
        if killed:
            server.start()
        wait_until(lambda: not journal.read_text())
    for request_id, usage in bills.items():
        row = chat_row(server.data_dir, request_id)
        assert (row["status"], row["count_quality"]) == ("completed", "exact")
        written = answering(usage)
        assert (row["input_tokens"], row["output_tokens"]) == (written["prompt_tokens"], written["completion_tokens"])
    assert server.http.get("/v1/admin/usage/reconciliation", params={"start_time": 0}).json()["ok"]
    server.stop()


@pytest.mark.timeout(300)
def test_a3_a_stream_that_is_killed_is_billed_from_its_last_checkpoint_and_others_exactly(server: ForkedServer) -> None:
    """Invariant 9: nothing stays reserved."""
    server.start()
    before = server.http.post("/v1/ask", json=QUESTION)
    deltas = 0
    with server.http.stream("POST", "/v1/ask", json=LONG) as response:
        request_id = response.headers["x-request-id"]
        for line in response.iter_lines():
            deltas += line == "event: delta"
            if deltas == 100 and chat_row(server.data_dir, request_id)["output_tokens"] >= 32:
                break
        server.kill()
    left = chat_row(server.data_dir, request_id)
    assert left["status"] == "reserved"
    server.start()

    row = chat_row(server.data_dir, request_id)
    assert (row["status"], row["count_quality"]) == ("recovered", "checkpoint")
    assert row["output_tokens"] == left["output_tokens"] >= 32
    whole = chat_row(server.data_dir, before.headers["x-request-id"])
    bill = before.json()["usage"]
    assert (whole["status"], whole["output_tokens"]) == ("completed", bill["completion_tokens"])
    assert server.http.get("/v1/admin/usage/reconciliation").json()["ok"]
    server.stop()


@pytest.mark.timeout(300)
def test_killed_at_random_moments_of_a_mixed_load_the_books_agree_each_time(tmp_path: Path) -> None:
    """Invariants 5, 6, 9, 10, 11 and 17, by the command's own look; 2 kills here, hundreds by the command."""
    looks: list[float] = []
    accounts = killed_at_random(tmp_path, kills=2, seed=11, report=lambda *told: looks.append(told[2]))

    assert len(looks) == 2
    assert accounts.begun
    assert accounts.bills


@pytest.mark.timeout(300)
def test_the_check_after_random_kills_detects_a_bill_without_its_row(tmp_path: Path) -> None:
    accounts = killed_at_random(tmp_path, kills=1, seed=12, report=lambda *_: None)
    accounts.bills["req_never"] = {
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    server = ForkedServer(tmp_path / "data", metered)
    try:
        server.start()
        with pytest.raises(KeyError):
            look(server, accounts)
    finally:
        server.close()


Step = tuple[int, str]


@settings(deadline=None, max_examples=15)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["settle", "again", "recover"])), max_size=14),
    order=st.permutations([0, 1, 2, 3]),
)
def test_f8_settled_twice_out_of_order_or_after_recovery_has_one_effect(
    migrated_file: Path, tmp_path_factory: pytest.TempPathFactory, steps: list[Step], order: list[int]
) -> None:
    """Invariant 8: idempotent, and commutative across requests."""
    path = tmp_path_factory.mktemp("settled") / "footnote.db"
    path.write_bytes(migrated_file.read_bytes())
    database = Database.open(f"sqlite:///{path}")
    try:
        one_effect(database, steps, order)
    finally:
        database.close()


def test_f8_repeated_settlement_has_one_effect_on_sqlite_and_postgresql(database: Database) -> None:
    one_effect(database, [(0, "settle"), (0, "again"), (1, "recover"), (1, "settle"), (2, "again")], [3, 1, 0, 2])


def one_effect(database: Database, steps: list[Step], order: list[int]) -> None:
    """Four calls, reserved in `order`, settled and recovered by `steps`: sums and budget count each of them once."""
    observers = (Budgets(), Rollups(zone_named("UTC")))
    ledger, later = Ledger(database, "boot_1", observers=observers), Ledger(database, "boot_2", observers=observers)
    with database.write() as connection:
        connection.execute(
            sa.insert(budget).values(
                budget_id="b1",
                tenant_id="t1",
                scope_type="tenant",
                scope_id="t1",
                unit="tokens",
                limit_value=10**6,
                period="total",
                enforcement="hard",
                created_by="u1",
                created_at=0,
            )
        )
    for number in order:
        ledger.reserve(reservation(f"req_{number}:1"))
    ended: dict[int, int] = {}
    for number, act in [*steps, *((number, "settle") for number in range(4))]:
        if act == "recover":
            assert later.recover() == 4 - len(ended)
            ended = {number: ended.get(number, 0) for number in range(4)}
            continue
        output = 10 * number + (5 if act == "again" else 1)
        took = ledger.settle(f"req_{number}:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=output))
        assert took == (number not in ended)
        ended.setdefault(number, output)

    spent = 4 * 20 + sum(ended.values())
    with database.read() as connection:
        total = sa.func.sum(usage_rollup_15m.c.input_tokens + usage_rollup_15m.c.output_tokens)
        calls = sa.func.sum(usage_rollup_15m.c.num_calls)
        assert tuple(map(int, connection.execute(sa.select(total, calls)).one())) == (spent, 4)
        window = connection.execute(sa.select(budget_window)).one()
        assert (window.reserved, window.settled) == (0, spent)
        still = sa.select(sa.func.count()).select_from(budget_hold).where(budget_hold.c.settled.is_(None))
        assert connection.execute(still).scalar_one() == 0


def tokenizers() -> list[tuple[Tokenizer, str]]:
    """A tokenizer and its revision, the same with another chat template, and another one."""
    usual = ChatTokenizer(tiny_tokenizer())
    framed = ChatTokenizer(tiny_tokenizer(chat_template=CHATML.replace("<|im_end|>\n", "<|im_end|>")))
    return [(usual, usual.revision), (framed, framed.revision), (LetterTokenizer(), "letters")]


def test_b8_another_tokenizer_or_chat_template_is_named_by_new_rows_and_old_rows_are_not_recounted(
    database: Database,
) -> None:
    rows: list[UsageEvent] = []
    for boot, (tokenizer, revision) in enumerate(tokenizers()):
        ledger = Ledger(database, f"boot_{boot}", observers=(Rollups(zone_named("UTC")),))
        ledger.recover()
        asked = replace(FOLLOW_UP, request_id=f"req_{boot}")
        meters = Meters(ledger=ledger, engine=SummarisingEngine(says="Who bought it?"), tokenizer_revision=revision)
        Rewriter(tokenizer=tokenizer).rewritten(asked, meter=meters.of(asked))
        rows += ledger.usage(f"req_{boot}")

        now = int(time.time())
        RollupBuilder(database, zone_named("UTC")).rebuild(tenant_id="t", start=now - 3600, end=now + 3600)
        assert [row for at in range(boot + 1) for row in ledger.usage(f"req_{at}")] == rows

    assert [row.tokenizer_revision for row in rows] == [revision for _, revision in tokenizers()]
    assert len({row.tokenizer_revision for row in rows}) == 3
    assert len({row.input_tokens for row in rows}) == 3, "each counts the same prompt in its own way"
    with database.read() as connection:
        total = connection.execute(sa.select(sa.func.sum(usage_rollup_15m.c.input_tokens))).scalar_one()
    assert int(total) == sum(row.input_tokens for row in rows)
