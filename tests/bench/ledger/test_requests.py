"""tests.bench.ledger.requests: the quick form of its run, and that it would find what it looks for."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from app.types import UsageStatus
from generation.ports import Observer, Stream
from generation.types import EngineStats, GenerationRequest
from tests.bench.ledger.requests import RecordingEngine, run, stub
from tests.faults.metered import metered, scripted
from tests.generation.fakes import LetterTokenizer


def test_prompt_engine_bill_row_and_report_counts_agree(tmp_path: Path) -> None:
    """Invariant 5, and 1 to 4 with it: prompt as sent, engine, bill, row and report."""
    serving, engine = stub(tmp_path / "data")
    with serving as state:
        figures = asyncio.run(run(state, engine, requests=60, clients=8, seed=5))

    assert figures.differences
    assert not any(figures.differences.values()), figures.differences
    assert figures.rows == len(engine.sent) > 30
    assert figures.bills > 30
    assert figures.statuses[UsageStatus.CLIENT_ABORT] > 0, "some were left in the middle"


class Miscounting(RecordingEngine):
    """Counts a prompt longer than it was."""

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        stream = super().submit(request, observer=observer)
        self.sent[request.id] += 1
        return stream


class Boasting(RecordingEngine):
    """Has generated a token that is on no bill."""

    def stats(self) -> EngineStats:
        stats = super().stats()
        return replace(stats, decode_tokens=stats.decode_tokens + 1)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Miscounting, "prompt as sent and row"), (Boasting, "engine and rows: decode")],
    ids=["prompt", "decode"],
)
def test_a_wrong_count_is_reported_as_a_difference(tmp_path: Path, kind: type[RecordingEngine], name: str) -> None:
    engine = kind(scripted(), LetterTokenizer(), recount=True)
    with metered(tmp_path / "data", engine=engine) as state:
        figures = asyncio.run(run(state, engine, requests=4, clients=2, seed=5))

    assert figures.differences[name] > 0
    assert figures.differences["bill and row: completion"] == 0
