"""app.probing.probe: quotes answer until the model was measured; each of its calls is on the ledger."""

import threading
from itertools import chain, repeat
from pathlib import Path

import pytest

from app.answering.generating.model_class import ModelClass
from app.answering.metering.meter import CallsClosed
from app.probing.asking import ENDPOINT
from app.probing.cases import Needs, ProbeCase, cases
from app.probing.probe import ModelProbe
from app.usage.ledger.ledger import Ledger
from generation.errors import EngineFull, GenerationError
from generation.types import CitationMarkers, FinishReason
from tests.app.probing.probed import ReadingEngine, probe_of, right
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]


@pytest.fixture
def ledger(sqlite_database):
    return Ledger(sqlite_database, boot_id="boot")


def facts_alone(case: ProbeCase) -> str:
    return right(case) if case.kind is not Needs.FORM else "No list."


def test_until_it_is_measured_quotes_answer_and_then_its_class_does(ledger: Ledger, tmp_path: Path) -> None:
    probe = probe_of(ReadingEngine(facts_alone), ledger, tmp_path)
    before = probe.standing
    told: list[tuple[int, int]] = []
    probe.measure(lambda done, total: told.append((done, total)))
    after = probe.standing

    assert (before.model_class, before.source, before.result) == (ModelClass.QUOTES, "unknown", None)
    assert (after.model_class, after.source) == (ModelClass.WRITER, "measured")
    assert after.result is not None
    assert (after.result.measured_at, after.result.reading.forms.count) == (7.0, 0)
    assert told == [(done, 40) for done in range(1, 41)]


def test_what_was_measured_is_found_at_the_next_start_and_not_for_another_model(ledger: Ledger, tmp_path: Path) -> None:
    probe_of(ReadingEngine(), ledger, tmp_path).measure()
    again = ReadingEngine()
    found, other = probe_of(again, ledger, tmp_path), probe_of(again, ledger, tmp_path, key="4567")
    found.start()
    found.close()

    assert found.standing.model_class is ModelClass.STRONG
    assert other.standing.source == "unknown"
    assert again.requests == []


@pytest.mark.parametrize("known", list(ModelClass))
def test_a_class_that_is_known_is_not_measured_unless_somebody_asks(
    known: ModelClass, ledger: Ledger, tmp_path: Path
) -> None:
    engine = ReadingEngine()
    probe = probe_of(engine, ledger, tmp_path, known=known)
    probe.start()
    probe.close()

    assert (probe.standing.model_class, probe.standing.source) == (known, "set")
    assert engine.requests == []


def test_each_case_is_asked_once_as_answers_are_and_behind_them(ledger: Ledger, tmp_path: Path) -> None:
    engine = ReadingEngine()
    probe_of(engine, ledger, tmp_path).measure()

    assert len(engine.requests) == len(cases())
    for case, request in zip(cases(), engine.requests, strict=True):
        assert request.constraint == CitationMarkers(len(case.sources))
        assert request.sampling.temperature == 0.0
        assert request.priority < 0


def test_every_call_is_on_the_ledger_at_nobodys_expense_but_the_installations(ledger: Ledger, tmp_path: Path) -> None:
    engine = ReadingEngine()
    probe_of(engine, ledger, tmp_path).measure()
    [request_id] = {request.id.partition(".")[0] for request in engine.requests}
    rows = ledger.usage(request_id)

    assert len(rows) == len(cases())
    assert {(row.status, row.operation) for row in rows} == {("completed", "chat")}
    assert sum(row.input_tokens for row in rows) == sum(len(request.prompt) for request in engine.requests)
    assert all(row.components.total == row.input_tokens for row in rows)
    with ledger._database.read() as connection:  # noqa: SLF001 - no report has them
        found = connection.exec_driver_sql("SELECT DISTINCT tenant_id, user_id, endpoint FROM api_request").all()
    assert found == [("default", "", ENDPOINT)]


def test_it_goes_on_where_a_full_engine_stopped_it(ledger: Ledger, tmp_path: Path) -> None:
    engine = ReadingEngine(busy=chain(repeat(False, 5), [True]))
    probe = probe_of(engine, ledger, tmp_path)
    with pytest.raises(EngineFull):
        probe.measure()
    assert (probe.standing.model_class, probe.standing.done) == (ModelClass.QUOTES, 5)
    probe.measure()

    assert len(engine.requests) == len(cases())
    assert probe.standing.model_class is ModelClass.STRONG


def test_a_reply_that_was_cut_off_by_a_failure_is_not_judged(ledger: Ledger, tmp_path: Path) -> None:
    engine = ReadingEngine()
    engine.reason = FinishReason.ERROR
    probe = probe_of(engine, ledger, tmp_path)

    with pytest.raises(GenerationError):
        probe.measure()
    assert probe.standing.done == 0


def test_it_measures_in_the_background_and_tells_how_far_it_is(ledger: Ledger, tmp_path: Path) -> None:
    reached, gate = threading.Event(), threading.Event()

    def at_the_tenth(case: ProbeCase) -> str:
        if case is cases()[9]:
            reached.set()
            assert gate.wait(30)
        return right(case)

    probe = probe_of(ReadingEngine(at_the_tenth), ledger, tmp_path)
    probe.start()
    assert reached.wait(30)
    under_way = probe.standing
    gate.set()
    finish(probe)

    assert (under_way.source, under_way.model_class, under_way.done) == ("measuring", ModelClass.QUOTES, 9)
    assert probe.standing.source == "measured"


def finish(probe: ModelProbe) -> None:
    """Wait until its thread has ended."""
    for thread in threading.enumerate():
        if thread.name == "footnote-probe":
            thread.join(30)


def test_closed_it_asks_no_more_and_keeps_nothing(ledger: Ledger, tmp_path: Path) -> None:
    probe = probe_of(ReadingEngine(lambda case: closing(probe, case)), ledger, tmp_path / "probes")

    with pytest.raises(CallsClosed):
        probe.measure()
    assert probe.standing.model_class is ModelClass.QUOTES
    assert not (tmp_path / "probes").exists()


def closing(probe: ModelProbe, case: ProbeCase) -> str:
    """Replies, and closes the probe at the third case."""
    if case is cases()[2]:
        probe.close()
    return right(case)


def test_a_result_that_cannot_be_kept_holds_until_the_process_ends(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "probes").write_text("a file where the folder should be")
    probe = probe_of(ReadingEngine(), ledger, tmp_path / "probes")
    probe.measure()

    assert probe.standing.model_class is ModelClass.STRONG
    assert probe_of(ReadingEngine(), ledger, tmp_path / "probes").standing.source == "unknown"
