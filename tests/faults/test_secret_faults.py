"""E9: secrets and users' text appear in no log, error, metric, trace or foreign column."""

import io
import logging
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn, cast

import pytest
import sqlalchemy as sa
import structlog
from fastapi.testclient import TestClient

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel`")
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.api.application import create_app
from app.db.session import Database
from app.errors import StoreUnavailable
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings, load_settings
from app.telemetry.logs import configure_logging, logger
from app.telemetry.otel import OtelTracer
from app.telemetry.timing import Instruments
from generation.ports import Engine, Observer
from generation.types import GenerationRequest
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conversing import TalkingEngine
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.root_log import log_put_back

CANARY = "canary7f3a"
TEXT = f"Two ships passed the {CANARY}text light house in March."
QUESTION = f"How many ships passed the {CANARY}question house?"
SECRETS = {
    "admin_key": f"fn_{CANARY}admin_key_0123",
    "remote_api_key": f"{CANARY}remote",
    "remote_url": f"http://u:{CANARY}url@127.0.0.1:1/v1",
    "remote_model": "m",
}
# What people give may stand in these columns, and each secret's hash in its own.
OWN_COLUMNS = {
    "document.filename", "document.external_id", "document.metadata", "document_version.text",
    "document_version.filename", "chunk.text", "chunk.heading_path", "collection.name", "idempotent_request.body",
}  # fmt: skip


class CarelessEngine(TalkingEngine):
    """Fails with what it was asked, as libraries do."""

    def submit(self, request: GenerationRequest, *, observer: Observer) -> NoReturn:
        try:
            raise ValueError(f"cannot encode {QUESTION!r}")
        except ValueError as error:
            raise RuntimeError(f"generation of {TEXT!r} failed") from error


class Watched:
    """An application of which everything that leaves it is kept: log, responses, metrics, traces."""

    def __init__(self, state: State, *, log: io.StringIO, engine: TalkingEngine) -> None:
        self.log, self.answers = log, list[str]()
        self.spans = InMemorySpanExporter()
        tracer = OtelTracer(SimpleSpanProcessor(self.spans), ratio=1.0, version="1")
        state = state_with(state, instruments=Instruments(state.telemetry.metrics, tracer))
        self.state = state
        models = stations(state, cast(Engine, engine), tokenizer=CharacterTokenizer(), limits=ANY_EVIDENCE)
        self.models = models
        app = create_app(lambda: nullcontext(state_with(state, models=models)), version="1")
        self.client = TestClient(app, headers={"Authorization": f"Bearer {SECRETS['admin_key']}"})

    def send(self, method: str, path: str, **options: object) -> int:
        response = self.client.request(method, path, **options)  # type: ignore[arg-type]  # httpx's own names
        if response.status_code >= 400:
            self.answers.append(response.text)
        return response.status_code

    def leaks(self) -> list[str]:
        """Where the canary was seen."""
        left = {
            "log": self.log.getvalue(),
            "errors": "".join(self.answers),
            "metrics": self.client.get("/metrics").text,
            "traces": "".join(span.to_json() for span in self.spans.get_finished_spans()),
        }
        assert all(left.values()), "something was looked at"
        return [f"{name}: {_around(text)}" for name, text in left.items() if CANARY in text]


def _around(text: str) -> str:
    at = text.index(CANARY)
    return text[max(0, at - 300) : at + 60]


@pytest.fixture(params=[True, False], ids=["json", "console"])
def log(request, monkeypatch) -> Iterator[io.StringIO]:
    """What would stand on standard error, at the level that says most."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with log_put_back():
        configure_logging(level="debug", json=request.param)
        yield written
    structlog.reset_defaults()


@pytest.fixture
def state(tmp_path: Path, log: io.StringIO) -> Iterator[State]:
    with build(Settings.model_validate({"data_dir": tmp_path / "data", **SECRETS}), with_models=False) as state:
        yield state


def plant(watched: Watched) -> set[int]:
    """Canaries in every input, in requests that go well and in ones that do not; the statuses."""
    send, canary = watched.send, {"X-Secret": CANARY, "traceparent": CANARY, "User-Agent": CANARY}
    return {
        send("GET", f"/v1/documents?limit={CANARY}&{CANARY}={CANARY}", headers=canary),
        send("GET", "/v1/usage", headers={"Authorization": f"Bearer fn_{CANARY}wrong"}),
        send("GET", f"/v1/{CANARY}/{CANARY}"),
        send("GET", f"/v1/documents/doc_{CANARY}"),
        send("POST", "/v1/documents", json={"text": TEXT, "filename": f"{CANARY}.txt", "metadata": {CANARY: CANARY}}),
        send("POST", "/v1/documents", files={"file": (f"{CANARY}.pdf", b"%PDF-1.4 " + TEXT.encode())}),
        send("POST", "/v1/documents", files={"file": (f"{CANARY}.exe", b"MZ\x00\x01" + TEXT.encode())}),
        send("POST", "/v1/documents", content=b"{" + TEXT.encode(), headers={"Content-Type": "application/json"}),
        send("POST", "/v1/search", json={"query": QUESTION}),
        send("POST", "/v1/search", json={"query": QUESTION, "top_k": CANARY}),
        send("POST", "/v1/search", json={"query": QUESTION, "filter": {"a": {"$nope": CANARY}}}),
        send("POST", "/v1/ask", json={"question": QUESTION}, headers={"Idempotency-Key": f"{CANARY}key"}),
        send("POST", "/v1/ask", json={"question": QUESTION, "stream": True}),
        send("POST", "/v1/collections", json={"name": CANARY}),
    }  # fmt: skip


@pytest.mark.parametrize(
    "engine", [TalkingEngine(says=f"Two ships {CANARY} [1]."), CarelessEngine()], ids=["well", "ill"]
)
def test_e9_canaries_in_every_input_are_in_no_log_error_metric_or_trace(state, log, engine):
    watched = Watched(state, log=log, engine=engine)
    watched.models.worker.start()
    with watched.client:
        statuses = plant(watched)
        watched.models.worker.wake()
        for job in watched.client.get("/v1/jobs").json()["data"]:
            watched.client.get(f"/v1/documents/{job['document_id']}/events")
        again = watched.send("POST", "/v1/ask", json={"question": QUESTION})
        leaks = watched.leaks()
    watched.models.worker.stop()
    watched.models.index.close()
    watched.models.lexical.close()

    assert {202, 401, 404, 415, 422} <= statuses
    assert again == (500 if isinstance(engine, CarelessEngine) else 200)
    assert leaks == []


def test_e9_canaries_are_in_no_column_but_their_own(state, log):
    watched = Watched(state, log=log, engine=TalkingEngine())
    with watched.client:
        plant(watched)

    found = set()
    with state.database.read() as connection:
        for name in sa.inspect(connection).get_table_names():
            for row in connection.exec_driver_sql(f'SELECT * FROM "{name}"').mappings():
                found |= {f"{name}.{column}" for column, value in row.items() if CANARY in _text(value)}

    unexpected = {column for column in found if column not in OWN_COLUMNS and not column.startswith("chunk_fts")}
    assert unexpected == set()
    assert "document_version.filename" in found


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def test_e9_a_statement_that_fails_does_not_quote_its_parameters(state, log):
    with pytest.raises(sa.exc.SQLAlchemyError) as failure, state.database.write() as connection:
        connection.execute(sa.text("INSERT INTO nothing VALUES (:text)"), {"text": TEXT})
    logger().error("failed", error=type(failure.value).__name__, exc_info=failure.value)

    assert CANARY not in str(failure.value)
    assert CANARY not in log.getvalue()
    assert "test_secret_faults" in log.getvalue(), "the frames are there"


def test_e9_a_library_that_logs_what_it_was_given_is_not_heard(log):
    logging.getLogger("parser").info("parsing %s", TEXT)
    logging.getLogger("parser").debug("parsing %s", TEXT)
    try:
        raise ValueError(TEXT)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")

    assert CANARY not in log.getvalue()
    assert "ValueError" in log.getvalue()


def test_e9_a_database_that_cannot_be_reached_does_not_tell_its_password(log):
    pytest.importorskip("psycopg", reason="the extra `postgres`")
    database = Database.open(f"postgresql://someone:{CANARY}@127.0.0.1:1/none")
    with pytest.raises(StoreUnavailable) as failure, database.read():
        pass
    logger().error("failed", exc_info=failure.value)

    assert CANARY not in str(failure.value) + log.getvalue()


def test_e9_settings_that_cannot_be_used_do_not_quote_secrets(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match="FOOTNOTE_PORT") as failure:
        load_settings(port=f"{CANARY}", admin_key=f"{CANARY}_0123456789", remote_api_key=CANARY)

    assert CANARY not in str(failure.value)
    assert CANARY not in repr(Settings(remote_url="http://a", remote_model="m", remote_api_key=CANARY, _env_file=None))


def test_e9_a_server_leaves_no_core_dump():
    code = "from app.server.process import forbid_core_dumps as f; import resource; f(); print(resource.getrlimit(4))"
    assert resource.RLIMIT_CORE == 4
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "(0, 0)"
