"""When the engine's thread dies or runs out of memory, its calls are settled and service resumes."""

import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.server.bootstrap import build
from app.server.collectors import EngineCollector
from app.server.state import State
from app.settings import Settings
from app.usage.ledger.ledger import Ledger
from generation.backoff import Backoff
from generation.engine import LocalEngine
from generation.step import DeviceLost, OutOfMemory
from generation.supervisor import SupervisedEngine
from tests.app.server.stations import state_with, stations
from tests.generation.fakes import Plan, ScriptedRunner, scripted_engine
from tests.generation.supervised import free_nothing

ADMIN_KEY = "fn_test_admin_key_of_the_suite"
QUESTION = {"question": "How many ships?", "on_no_evidence": "answer", "max_output_tokens": 4}


@dataclass
class Device:
    """What the scripted models run on; once lost, it stays so until the next engine is made, when `free` is set."""

    lost: bool = False
    full: bool = False
    free: threading.Event = field(default_factory=threading.Event)

    def engine(self) -> LocalEngine:
        assert self.free.wait(60), "it was never free"
        self.lost = False
        return scripted_engine(ScriptedRunner(before_step=self._before_step))

    def _before_step(self, plan: Plan) -> None:
        if self.lost and any(work.sequence.generated for work in plan):
            raise DeviceLost
        if self.full:
            raise OutOfMemory


@dataclass
class Service:
    """The application over a scripted model."""

    http: TestClient
    state: State
    device: Device

    def readiness(self) -> tuple[int, list[str]]:
        response = self.http.get("/readyz")
        return response.status_code, response.json()["reasons"]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings = Settings(data_dir=tmp_path / "data", admin_key=ADMIN_KEY, _env_file=None)
    device = Device()
    device.free.set()
    engine = SupervisedEngine(device.engine, backoff=Backoff(first_s=0.01, longest_s=30.0), free=free_nothing)
    with build(settings, with_models=False) as bare:
        models = stations(bare, engine)
        bare.telemetry.metrics.register(EngineCollector(engine))
        state = state_with(bare, models=models)
        app = create_app(lambda: nullcontext(state), version="0")
        models.worker.start()
        try:
            with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as http:
                yield Service(http, state, device)
        finally:
            device.free.set()
            models.worker.stop()
            engine.close()


def test_c6_a_dead_engine_is_seen_in_readyz_at_once_and_gone_from_it_after_the_restart(service: Service) -> None:
    assert service.readiness() == (200, [])
    assert service.http.post("/v1/ask", json=QUESTION).json()["answer"] == "abcd"

    service.device.free.clear()
    service.device.lost = True
    failed = service.http.post("/v1/ask", json=QUESTION)

    assert service.readiness() == (503, ["engine: stopped"]), "asked once, not until it is so"
    assert (failed.status_code, failed.json()["detail"]) == (503, "The generation engine stopped unexpectedly.")
    assert service.http.get("/healthz").status_code == 200
    assert "footnote_engine_up 0.0" in service.http.get("/metrics").text
    refused = service.http.post("/v1/ask", json=QUESTION)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:footnote:problem:engine-stopped")
    assert "restarting" in refused.json()["detail"]
    assert refused.headers["retry-after"]

    service.device.free.set()
    deadline = time.monotonic() + 60
    while service.readiness()[0] != 200:
        assert time.monotonic() < deadline, "it never came back"
        time.sleep(0.02)
    assert service.http.get("/readyz").json()["checks"]["engine"]["restarts"] == 1
    assert service.http.post("/v1/ask", json=QUESTION).json()["answer"] == "abcd"


def test_c6_a_stream_the_engine_dies_under_ends_with_an_error_and_its_row_is_settled(service: Service) -> None:
    service.device.lost = True

    began = time.monotonic()
    with service.http.stream("POST", "/v1/ask", json={**QUESTION, "stream": True}) as response:
        text = response.read().decode()
    took = time.monotonic() - began
    assert took < 30.0, "two seconds are promised; a busy machine gets more"

    assert text.rstrip().rsplit("event: ", 1)[1].startswith("error\n")
    assert "The generation engine stopped unexpectedly." in text
    assert "urn:footnote:problem:engine-stopped" in text
    rows = Ledger(service.state.database, boot_id="boot-1").usage(response.headers["x-request-id"])
    assert [(row.status, row.output_tokens) for row in rows if row.operation == "chat"] == [("error", 1)]
    counted = service.http.get("/metrics").text
    assert "footnote_engine_requests_total 1.0" in counted
    assert "footnote_engine_decode_tokens_total 1.0" in counted


def test_c5_a_device_without_memory_refuses_the_request_alone(service: Service) -> None:
    service.device.full = True
    whole = service.http.post("/v1/ask", json=QUESTION)
    with service.http.stream("POST", "/v1/ask", json={**QUESTION, "stream": True}) as response:
        text = response.read().decode()
    service.device.full = False

    assert (whole.status_code, whole.json()["type"]) == (503, "urn:footnote:problem:engine-out-of-memory")
    assert whole.headers["retry-after"]
    assert text.rstrip().rsplit("event: ", 1)[1].startswith("error\n")
    assert "urn:footnote:problem:engine-out-of-memory" in text
    for failed in (whole, response):
        rows = Ledger(service.state.database, boot_id="boot-1").usage(failed.headers["x-request-id"])
        assert [row.status for row in rows if row.operation == "chat"] == ["error"]
    assert service.readiness() == (200, []), "the engine lives"
    assert service.http.post("/v1/ask", json=QUESTION).json()["answer"] == "abcd"
