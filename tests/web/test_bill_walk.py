"""Three questions that quotes answer, on five bills: the page's, the API's, the CSV's, the command's and the books'."""

import csv
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.app.answering.answerers import QuotesAs
from tests.app.cli.command_line import CommandLine
from tests.app.server.embedder_swaps import wait_until
from tests.faults.forked import ForkedServer
from tests.server import ADMIN_KEY
from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant, served_from
from tests.web.looking import seen
from tests.web.made_documents import HARBOUR, QUESTION
from tests.web.served import application

QUESTIONS = (QUESTION, "Who counted every lantern?", "Where did the forty ships go?")
_ROWS = """
[...document.querySelectorAll("[data-table=totals] tbody tr")].map(
  (row) => [row.querySelector("th").textContent, ...[...row.querySelectorAll("td")].map((cell) => cell.textContent)])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedServer]:
    """A new installation that answers by quotes; no model has a price."""
    with served_from(tmp_path_factory.mktemp("walk"), partial(application, quotes=QuotesAs.FIRST)) as server:
        yield server


@pytest.fixture
def footnote(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """The command, against the server."""
    line = CommandLine(tmp_path, monkeypatch, capsys)
    line.reach(url=url, data_dir=str(tmp_path / "none"))
    return line


def report(tenant: Tenant, **params: Any) -> list[dict[str, Any]]:
    """The results of this month's report of all calls."""
    start = tenant.http.get("/v1/usage").json()["month"]["start_time"]
    page = tenant.http.get("/v1/admin/usage", params={"start_time": start, "bucket_width": "1mo", **params}).json()
    assert page["next_page"] is None
    return [result for bucket in page["data"] for result in bucket["results"]]


def number(text: str) -> int:
    return int(text.replace(",", ""))


async def test_three_answers_are_the_same_on_every_bill(
    open_page: Opening, tenant: Tenant, footnote: CommandLine
) -> None:
    document = tenant.upload("harbour.txt", HARBOUR)
    overview = f"/v1/documents/{document}/overview"
    wait_until(lambda: tenant.http.get(overview).json()["state"] == "ready")
    (indexing,) = report(tenant)
    assert (indexing["num_answers"], indexing["num_model_requests"]) == (0, 3), (
        "it is embedded, and one question is asked of it"
    )

    page = await open_page(tenant)
    turn = await ask(page, QUESTIONS[0])
    await turn.locator(".ask-how summary").click()
    shown = turn.locator(".ask-how tfoot td.number").first
    first = number(await shown.inner_text())
    models = turn.locator("[data-table=calls] tbody tr")
    assert {await row.locator("td").first.inner_text() for row in await models.all()} == {"hashing", "pointing"}
    assert "scripted" not in await turn.locator(".ask-how").inner_text(), "the language model was not called"
    others = [tenant.ask(question)["usage"] for question in QUESTIONS[1:]]
    spent = first + sum(usage["total_tokens"] for usage in others)
    assert first > 0 and all(usage["total_tokens"] > 0 for usage in others)

    # The API
    (whole,) = report(tenant)
    by_model = {one["model"]: one for one in report(tenant, group_by="model")}
    assert whole["num_answers"] == len(QUESTIONS)
    assert whole["total_tokens"] == indexing["total_tokens"] + spent
    assert set(by_model) == {"hashing", "pointing"}
    assert sum(one["total_tokens"] for one in by_model.values()) == whole["total_tokens"]

    # The CSV
    start = tenant.http.get("/v1/usage").json()["month"]["start_time"]
    params = {"start_time": start, "bucket_width": "1mo"}
    text = tenant.http.get("/v1/admin/usage", params=params, headers={"Accept": "text/csv"}).text
    (row,) = csv.DictReader(io.StringIO(text))
    assert {name: int(row[name]) for name in ("num_answers", "total_tokens", "num_model_requests")} == {
        name: whole[name] for name in ("num_answers", "total_tokens", "num_model_requests")
    }

    # The page
    await page.goto(f"{page.url.split('#')[0]}#/usage")
    await seen(page, ".card", f"{len(QUESTIONS)} answers")
    await page.get_by_label("Split by").select_option("model")
    await seen(page, "[data-table=totals] tbody th", "pointing")
    rows = {name: cells for name, *cells in await page.evaluate(_ROWS)}
    assert {name: (number(cells[0]), number(cells[-2])) for name, cells in rows.items()} == {
        name: (one["num_model_requests"], one["total_tokens"]) for name, one in by_model.items()
    }

    # The command
    said = footnote.said("usage", "report", "--by", "model", key=tenant.key)
    lines = said.splitlines()
    assert lines[0] == (
        f"3 answers; {whole['input_tokens']:,} tokens read and 0 written by {whole['num_model_requests']} model calls."
    )
    told = {words[0]: (number(words[1]), number(words[2])) for line in lines[2:] if len(words := line.split()) == 7}
    assert told == {
        **{name: (one["num_model_requests"], one["input_tokens"]) for name, one in by_model.items()},
        "total": (whole["num_model_requests"], whole["input_tokens"]),
    }
    assert "At 1 usd per million tokens it would be" in " ".join(said.split())

    # The books
    assert "The books agree." in footnote.said("usage", "reconcile", key=ADMIN_KEY)
