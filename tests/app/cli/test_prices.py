"""`footnote prices`: tables a person can read, and nothing adjusted before it is asked for twice."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import cast

import httpx
import pytest
from rich.console import Console

from app.cli.prices import begin_price, rerate_calls, show
from app.client import Client, Refused
from app.server.bootstrap import build
from app.settings import Settings
from app.types import Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from tests.app.api.conftest import client_of
from tests.app.usage.samples import reservation
from tests.installation import installed
from tests.server import ADMIN_KEY


class Terminal:
    """The commands on an application without models; what they say."""

    def __init__(self, client: Client, ledger: Ledger) -> None:
        self.client, self.ledger = client, ledger

    def show(self, model: str | None = None, at: datetime | None = None) -> str:
        show(self.client, console := self._console(), model=model, at=at)
        return self._said(console)

    def set(self, meter: str, price: str, begin: datetime | None = None) -> str:
        begin_price(self.client, console := self._console(), "m1", meter, price, begin=begin, source="contract [7]")
        return self._said(console)

    def rerate(self, *, write: bool) -> str:
        start, end = (datetime.fromtimestamp(time.time() + shift, UTC) for shift in (-3600, 3600))
        rerate_calls(
            self.client, console := self._console(), start=start, end=end, models=None, reason="late", write=write
        )
        return self._said(console)

    def _console(self) -> Console:
        return Console(file=StringIO(), width=140)

    def _said(self, console: Console) -> str:
        return cast(StringIO, console.file).getvalue()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    settings = Settings(data_dir=installed(tmp_path / "data"), admin_key=ADMIN_KEY, _env_file=None)
    with build(settings, with_models=False) as state:
        with client_of(state) as http:
            yield Terminal(Client(cast(httpx.Client, http)), Ledger(state.database, "b"))  # the same methods


def test_prices_are_set_and_listed(terminal: Terminal) -> None:
    assert terminal.show() == "There are no prices.\n"
    said = terminal.set("input", "0.15", datetime(2099, 1, 1))  # noqa: DTZ001 - what is typed without a zone is UTC
    terminal.set("output", "3")

    assert said == "m1, input: 0.150000 usd a million tokens from 2099-01-01 00:00:00.\n"
    first, second = terminal.show().splitlines()[1:]
    assert first.split()[:6] == ["m1", "input", "0.150000", "usd", "2099-01-01", "00:00:00"]
    assert second.split()[:4] == ["m1", "output", "3.000000", "usd"]
    assert first.rstrip().endswith("contract [7]")
    assert len(terminal.show(at=datetime.now(UTC)).splitlines()) == 2
    assert terminal.show(model="m2") == "There are no prices.\n"


def test_a_price_that_cannot_be_is_refused_in_a_sentence(terminal: Terminal) -> None:
    with pytest.raises(Refused, match="price_per_million must be a decimal"):
        terminal.set("input", "0,15")


def test_calls_are_adjusted_only_when_that_is_asked_for(terminal: Terminal) -> None:
    assert terminal.rerate(write=False) == "No call was settled then.\n"
    terminal.ledger.reserve(reservation(tenant_id="default"))
    terminal.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=1))
    for meter in ("input", "output"):
        terminal.set(meter, "1", datetime.fromtimestamp(time.time() - 60, UTC))

    foreseen, done, again = terminal.rerate(write=False), terminal.rerate(write=True), terminal.rerate(write=True)
    assert [said.splitlines()[1].split() for said in (foreseen, done, again)] == [
        ["m1", "1", "1", "1", "0", "0.000021000000", "usd"],
        ["m1", "1", "1", "1", "0", "0.000021000000", "usd"],
        ["m1", "1", "0", "0", "0", "0.000000000000", "usd"],
    ]
    assert foreseen.endswith("Nothing was changed; --write does it.\n")
    assert done.endswith("Adjusted.\n")
