"""`footnote usage` and `footnote audit`: tables a person can read, and files byte for byte as the API gives them."""

import io
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import httpx
import pytest
import typer
from fastapi.testclient import TestClient
from rich.console import Console

from app.cli.audit import show as show_audit
from app.cli.usage import (
    document_params,
    download_csv,
    last_period,
    report_params,
    show_documents,
    show_events,
    show_reconciliation,
    show_report,
)
from app.cli.usage_table import money_text
from app.client import Client, Refused
from app.db.answer_citations import AnswerCitationRepository, AnswerOutcome, AnswerResult
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import DocumentShare, Operation, Principal, Role, Settlement, UsageStatus
from tests.app.api.conftest import client_of
from tests.app.usage.samples import reservation
from tests.installation import installed
from tests.server import ADMIN_KEY

ADMIN = Principal("default", "root", "key_root", Role.ADMIN)


class Terminal:
    """The commands on an application without models, and what they say."""

    def __init__(self, http: TestClient, state: State) -> None:
        self.http, self.state = http, state
        self.client = Client(cast(httpx.Client, http))  # the same methods

    def said(self, show: Any, *arguments: Any, **options: Any) -> str:
        console = Console(file=io.StringIO(), width=160)
        show(self.client, console, *arguments, **options)
        return cast(io.StringIO, console.file).getvalue()

    def settle(self, event_id: str, *, output: int, **reserved: Any) -> None:
        self.state.usage.ledger.reserve(reservation(event_id, tenant_id="default", max_output_tokens=10**7, **reserved))
        settlement = Settlement(status=UsageStatus.COMPLETED, output_tokens=output, delivered_tokens=output)
        self.state.usage.ledger.settle(event_id, settlement)

    def end(self, request_id: str, *, user_id: str) -> None:
        """A question ended with an answer."""
        outcome = AnswerOutcome(
            request_id=request_id,
            tenant_id="default",
            user_id=user_id,
            endpoint="ask",
            result=AnswerResult.ANSWERED,
            confirmed=True,
            total_us=1,
        )
        AnswerCitationRepository(self.state.database).record(
            request_id, tenant_id="default", citations={}, outcome=outcome
        )

    def cite(self, request_id: str, citations: dict[str, int]) -> None:
        AnswerCitationRepository(self.state.database).record(request_id, tenant_id="default", citations=citations)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    settings = Settings(data_dir=installed(tmp_path / "data"), admin_key=ADMIN_KEY, _env_file=None)
    with build(settings, with_models=False) as state:
        with client_of(state) as http:
            yield Terminal(http, state)


def rows_of(said: str) -> list[list[str]]:
    return [line.split() for line in said.splitlines() if line.strip()]


def test_a_report_is_a_row_a_group_the_dearest_first_and_a_total(terminal):
    terminal.state.usage.prices.add(ADMIN, model="m1", meter="input", price_per_million="1")
    terminal.state.usage.prices.add(ADMIN, model="m1", meter="output", price_per_million="2")
    terminal.settle("req_1:1", user_id="ada", output=1_000_000)
    terminal.settle("req_2:1", user_id="bob", output=2_000_000)
    terminal.settle("req_3:1", user_id="ada", output=234_567)
    terminal.settle("req_4:1", user_id="cay", model="m2", output=1)

    rows = rows_of(terminal.said(show_report, of="completions", by="user,model", period="30d"))

    assert rows[0] == ["user", "model", "requests", "input", "cached", "output", "aborted", "unpriced", "cost", "(usd)"]
    assert [row[:2] for row in rows[1:]] == [["bob", "m1"], ["ada", "m1"], ["cay", "m2"], ["total", "4"]]
    assert rows[1][2:] == ["1", "20", "0", "2,000,000", "0", "0", "4.000020"]
    assert rows[2][2:] == ["2", "40", "0", "1,234,567", "0", "0", "2.469174"]
    assert rows[3][-1] == "unpriced"
    assert rows[4][1:] == ["4", "80", "0", "3,234,568", "0", "1", "6.469194"]


def test_a_usage_report_has_a_row_per_day_user_and_model(terminal):
    terminal.settle("req_1:1", user_id="ada", output=7)

    rows = rows_of(terminal.said(show_report, by="user,model", period="30d", width="1d"))

    assert rows[0] == ["0", "answers;", "20", "tokens", "read", "and", "7", "written", "by", "1", "model", "call."]
    assert rows[1][:3] == ["from", "user", "model"]
    assert rows[2][:3] == [datetime.now(UTC).date().isoformat(), "ada", "m1"]


def test_the_report_has_the_calls_of_every_model_and_what_a_price_would_make_of_them(terminal):
    terminal.settle(
        "req_1:0", user_id="ada", model="embedder", operation=Operation.EMBED_QUERY, input_tokens=7, output=0
    )
    terminal.settle("req_1:1", user_id="ada", model="reader", operation=Operation.JUDGE, input_tokens=7, output=0)
    terminal.end("req_1", user_id="ada")

    rows = rows_of(terminal.said(show_report, by="user,model", period="30d"))

    assert " ".join(rows[0]) == "1 answer; 14 tokens read and 0 written by 2 model calls."
    assert rows[1] == ["user", "model", "calls", "read", "cached", "written", "unpriced", "cost", "(usd)"]
    assert rows[2] == ["ada", "embedder", "1", "7", "0", "0", "1", "unpriced"]
    assert rows[3] == ["ada", "reader", "1", "7", "0", "0", "1", "unpriced"]
    assert rows[4] == ["total", "2", "14", "0", "0", "2", "unpriced"]
    said = " ".join(word for row in rows[5:] for word in row)
    assert said.startswith("2 calls have no price: `footnote prices set` sets one,")
    assert said.endswith("At 1 usd per million tokens it would be 0.000014 usd.")


def test_where_some_calls_have_a_price_the_others_are_counted(terminal):
    terminal.state.usage.prices.add(ADMIN, model="reader", meter="input", price_per_million="1")
    terminal.settle("req_1:0", model="embedder", operation=Operation.EMBED_QUERY, input_tokens=7, output=0)
    terminal.settle("req_1:1", model="reader", operation=Operation.JUDGE, input_tokens=7, output=0)

    said = " ".join(terminal.said(show_report, by="model", period="30d").split())

    assert said.endswith(
        "1 call has no price: `footnote prices set` sets one, `footnote prices rerate` applies it to past calls."
    )


def test_costs_can_be_read_by_line_item(terminal):
    terminal.state.usage.prices.add(ADMIN, model="m1", meter="input", price_per_million="1")
    terminal.state.usage.prices.add(ADMIN, model="m1", meter="output", price_per_million="2")
    terminal.settle("req_1:1", output=1_000_000)

    said = terminal.said(show_report, of="costs", by="item", period="1mo")

    assert "m1, output" in said
    assert rows_of(said)[-1] == ["total", "1,000,020", "-", "2.000020"]


def test_where_nothing_was_spent_it_says_so(terminal):
    assert terminal.said(show_report, by="user", period="30d") == "Nothing was asked, and no model was called.\n"
    assert terminal.said(show_report, of="rerank", by="user", period="30d") == "Nothing was spent.\n"
    assert terminal.said(show_events, {"start_time": 0}) == "Nothing was settled.\n"
    assert terminal.said(show_audit, limit=5) == "Nothing was done.\n"


def test_a_file_is_byte_for_byte_the_apis(terminal):
    terminal.settle("req_1:1", user_id="ä,b", output=7)
    params = report_params(terminal.client, by="user", period="2d", tz="Europe/Berlin", width="1h")
    params["end_time"] = int(time.time()) + 1
    out = io.BytesIO()

    download_csv(terminal.client, "/v1/admin/usage/completions", params, out)

    wanted = terminal.http.get("/v1/admin/usage/completions", params=params, headers={"Accept": "text/csv"}).content
    assert out.getvalue() == wanted
    assert b'"\xc3\xa4,b"' in wanted


def test_a_file_that_is_refused_says_why(terminal):
    with pytest.raises(Refused, match="Cannot group by"):
        download_csv(
            terminal.client, "/v1/admin/usage/completions", {"start_time": 0, "group_by": "colour"}, io.BytesIO()
        )


def test_events_are_lines_and_say_when_there_are_more(terminal):
    for number in range(3):
        terminal.settle(f"req_{number}:1", user_id="ada [x]", output=1000 + number)

    said = terminal.said(show_events, {"start_time": 0, "limit": 2})

    assert "ada [x]" in said
    assert "1,000" in said
    assert "req_2" not in said
    assert "There are more" in said
    assert rows_of(said)[-2][-2:] == ["2,001", "unpriced"]


def test_documents_come_dearest_first_with_a_total(terminal):
    terminal.settle("req_1:1", output=1, documents=[DocumentShare("doc_gone", 1, 6)])
    terminal.cite("req_1", {"doc_gone": 2})

    rows = rows_of(terminal.said(show_documents, {"start_time": 0, "limit": 5}))

    assert rows[0] == ["document", "id", "retrieved", "cited", "citations", "context", "ingest", "cost", "(usd)"]
    assert rows[1][:7] == ["(deleted)", "doc_gone", "1", "1", "2", "6", "0"]
    assert rows[2][0] == "total"


def test_documents_that_no_answer_cites_are_an_option(terminal):
    terminal.settle("req_1:1", output=1, documents=[DocumentShare("doc_1", 1, 6), DocumentShare("doc_2", 1, 2)])
    terminal.cite("req_1", {"doc_1": 2})

    span = 0, int(time.time()) + 60
    every, never = (
        terminal.said(show_documents, document_params(span, by="cited", least=False, never_cited=asked))
        for asked in (False, True)
    )

    assert [row[1] for row in rows_of(every)[1:3]] == ["doc_1", "doc_2"]
    assert [row[1] for row in rows_of(never)[1:2]] == ["doc_2"]
    assert "doc_1" not in never
    terminal.cite("req_2", {"doc_2": 1})
    assert "no such documents" in terminal.said(
        show_documents, document_params(span, by="cost", least=True, never_cited=True)
    )


def test_reconciliation_is_a_table_and_a_verdict(terminal):
    terminal.settle("req_1:1", output=7)

    said = terminal.said(show_reconciliation, {"start_time": 0})

    assert "agrees" in said
    assert said.endswith("The books agree.\n")


def test_the_audit_log_is_the_newest_first(terminal):
    key = terminal.http.post("/v1/admin/keys", json={"name": "ci"}).json()
    terminal.http.delete(f"/v1/admin/keys/{key['id']}")

    said = terminal.said(show_audit, limit=5)

    assert said.index("key.revoked") < said.index("key.created")
    assert key["secret"] not in said
    assert "key.revoked" not in terminal.said(show_audit, limit=5, action="key.created")


NOON = datetime(2026, 3, 30, 12, tzinfo=ZoneInfo("Europe/Berlin"))  # the day after clocks went forward


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [
        ("1d", (2026, 3, 30), (2026, 3, 31)),
        ("2d", (2026, 3, 29), (2026, 3, 31)),
        ("30d", (2026, 3, 1), (2026, 3, 31)),
        ("1w", (2026, 3, 24), (2026, 3, 31)),
        ("1mo", (2026, 3, 1), (2026, 3, 31)),
        ("3mo", (2026, 1, 1), (2026, 3, 31)),
        ("4mo", (2025, 12, 1), (2026, 3, 31)),
    ],
)
def test_periods_are_local_days_the_running_one_included(period, start, end):
    zone = ZoneInfo("Europe/Berlin")
    expected = tuple(int(datetime(day[0], day[1], day[2], tzinfo=zone).timestamp()) for day in (start, end))

    assert last_period(period, zone, NOON.timestamp()) == expected


def test_hours_are_whole_and_nonsense_is_refused():
    assert last_period("2h", ZoneInfo("UTC"), 7_201.0) == (3_600, 10_800)
    for period in ("", "0d", "d", "1y", "-1d", "99999mo"):
        with pytest.raises(typer.BadParameter):
            last_period(period, ZoneInfo("UTC"), time.time())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unpriced"),
        ("0.000000000000", "0.000000"),
        ("0.000000000001", "<0.000001"),
        ("-0.000000000001", ">-0.000001"),
        ("0.000001000000", "0.000001"),
        ("-1234567.500000000000", "-1,234,567.500000"),
        ("9223372036854.775807000000", "9,223,372,036,854.775807"),
    ],
)
def test_amounts_are_never_shown_as_nothing_when_they_are_something(value, shown):
    assert money_text(None if value is None else Decimal(value)) == shown
