"""While the server runs, a model that was measured takes over from quotes; /v1/models tells how far that is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.probing.probed import ReadingEngine, probe_of
from tests.golden.application import Application, serving
from tests.installation import installed

QUESTION = "Who built the lighthouse of Skarn?"
TEXT = "The lighthouse of Skarn was built by Edda Holm in 1871. It is 40 metres high."


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    """An application over one document whose model is unknown."""
    with serving(installed(tmp_path / "data"), {"generator": "someone/model-2b"}) as made:
        worker = made.state.serving.current().worker
        worker.start()
        sent = made.http.post("/v1/documents", files={"file": ("skarn.txt", TEXT.encode())}, data={"wait": "30"})
        assert sent.json()["status"] == "indexed", sent.text
        worker.stop()
        yield made


def asked(application: Application) -> dict[str, Any]:
    found: dict[str, Any] = application.http.post("/v1/ask", json={"question": QUESTION}).json()
    return found


def listed(application: Application) -> dict[str, Any]:
    found: dict[str, Any] = application.http.get("/v1/models").json()["data"][0]
    return found


def test_quotes_answer_until_it_is_measured_and_then_the_model_does(application: Application, tmp_path: Path) -> None:
    state = application.state
    state.serving.probe = probe = probe_of(ReadingEngine(), state.usage.ledger, tmp_path / "probes")
    quoted, before = asked(application), listed(application)
    assert application.models.engine.submitted == 0
    probe.measure()
    worded, after = asked(application), listed(application)

    assert application.models.engine.submitted == 1
    assert quoted["answer"] != worded["answer"]
    assert (before["answers"], before["probe"]["source"], before["probe"]["reading"]) == ("quotes", "unknown", None)
    assert (after["answers"], after["probe"]["model_class"]) == ("generated", "strong")
    assert after["probe"]["reading"]["reads"] == {"count": 20, "of": 20}
    assert after["probe"]["measured_at"] == 7.0


def test_a_server_without_a_probe_says_nothing_of_one(application: Application) -> None:
    assert listed(application)["probe"] is None
