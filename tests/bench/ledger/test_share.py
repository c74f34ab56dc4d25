"""tests.bench.ledger.share: the share of a request's time that the ledger takes, in a short run."""

from pathlib import Path

from tests.bench.ledger.share import measure


def test_the_time_of_the_ledger_is_part_of_the_time_of_a_request(tmp_path: Path) -> None:
    found = measure(tmp_path, requests=6, streams=3, output_tokens=20, scripted=True)

    assert found["request_ms"] > 0
    assert found["ledger_ms"] > 0, "every request is written down"
    assert 0 < found["share"] < 1
