"""Traces: one per request and one per job, their stations as children, by the OpenTelemetry SDK where one is set."""

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest
from fastapi.testclient import TestClient

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel`")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.api.application import create_app
from app.outbound.webhooks import NotDelivered, Webhooks
from app.server.bootstrap import build
from app.settings import Settings
from app.telemetry.metrics import Metrics
from app.telemetry.otel import OtelTracer, open_tracer
from app.telemetry.timing import Instruments, current, timed, traceparent
from app.telemetry.tracing import NO_TRACES
from generation.ports import Engine
from generation.remote import RemoteEngine
from generation.remote_config import RemoteConfig
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.bills import answering
from tests.app.api.conftest import ADMIN_KEY
from tests.app.api.conversing import TalkingEngine
from tests.app.outbound.test_web_pages import PUBLIC, Names, Wire
from tests.app.outbound.test_web_pages import answer as reply
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.generation.completion_server import CompletionServerStandIn, like_vllm
from tests.generation.fakes import LetterTokenizer
from tests.installation import installed

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TEXT = "Two ships passed the canary light house in March."


class Traced:
    """Instruments whose spans are kept in memory."""

    def __init__(self, *, ratio: float = 1.0) -> None:
        self.exporter = InMemorySpanExporter()
        self.instruments = Instruments(
            Metrics(), OtelTracer(SimpleSpanProcessor(self.exporter), ratio=ratio, version="1")
        )

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None, f"{span.name} has no parent"
    return span.parent.span_id


def test_stations_are_spans_within_the_request_which_is_within_its_caller():
    traced = Traced()
    work = traced.instruments.request("POST /v1/ask", parent=CALLER, attributes={"http.request.method": "POST"})
    with work.active(), timed("retrieve"):
        with timed("dense"):
            inner = traceparent()
    work.span.end()

    request, retrieve, dense = (traced.spans[name] for name in ("POST /v1/ask", "retrieve", "dense"))
    assert f"{parent_of(request):016x}" == CALLER.split("-")[2]
    assert {f"{span.context.trace_id:032x}" for span in traced.spans.values()} == {CALLER.split("-")[1]}
    assert parent_of(retrieve) == request.context.span_id
    assert parent_of(dense) == retrieve.context.span_id
    assert inner == f"00-{dense.context.trace_id:032x}-{dense.context.span_id:016x}-01"


@pytest.mark.parametrize(("parent", "kept"), [(None, False), (CALLER, True), ("nonsense", False)])
def test_a_callers_decision_is_followed_and_the_ratio_is_for_the_others(parent, kept):
    traced = Traced(ratio=0.0)
    traced.instruments.request("GET /", parent=parent, attributes={}).span.end()

    assert bool(traced.spans) is kept


def test_an_error_is_its_type_alone():
    traced = Traced()
    work = traced.instruments.request("GET /", parent=None, attributes={})
    with pytest.raises(ValueError, match="canary"), work.active(), timed("dense"):
        raise ValueError("canary")

    span = traced.spans["dense"]
    assert span.attributes == {"error.type": "ValueError"}
    assert "canary" not in span.to_json()


def test_a_job_is_a_trace_of_its_own_linked_to_the_request_that_queued_it():
    traced = Traced()
    request = traced.instruments.request("POST /v1/documents", parent=None, attributes={})
    with request.active():
        traced.instruments.queued("job_1")
    request.span.end()
    jobs = [traced.instruments.job("job_1"), traced.instruments.job("job_2")]
    with traced.instruments.together("embed", jobs):
        pass
    for job in jobs:
        job.span.end()

    spans = traced.exporter.get_finished_spans()
    upload = next(span for span in spans if span.name == "POST /v1/documents")
    first, second = (span for span in spans if span.name == "ingest")
    assert [link.context.span_id for link in first.links] == [upload.context.span_id]
    assert first.context.trace_id != upload.context.trace_id
    assert second.links == ()
    embeds = [span for span in spans if span.name == "embed"]
    assert {parent_of(span) for span in embeds} == {first.context.span_id, second.context.span_id}


def test_without_an_endpoint_nobody_traces():
    assert open_tracer("", ratio=1.0, version="1") is NO_TRACES
    assert traceparent() is None
    with current().active(), timed("dense") as measured:
        pass
    assert measured.seconds > 0


@pytest.mark.parametrize("within", [True, False], ids=["a request", "nothing"])
def test_a_delivery_to_a_webhook_hands_its_trace_on(within):
    traced, wire = Traced(), Wire(reply(b""))
    webhooks = Webhooks(resolve=Names({"hooks.example": [[PUBLIC]]}), backend=wire, tracer=traced.instruments.tracer)
    work = traced.instruments.request("GET /", parent=CALLER, attributes={}) if within else current()
    with work.active():
        webhooks.post("https://hooks.example/", {})

    span = traced.spans["webhook"]
    assert f"traceparent: 00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01\r\n".encode() in wire.sent
    assert (f"{span.context.trace_id:032x}" == CALLER.split("-")[1]) is within
    assert not span.attributes, "an address may be a secret"


def test_a_delivery_that_fails_is_an_error_in_its_trace():
    traced = Traced()
    webhooks = Webhooks(resolve=Names({}), backend=Wire(), tracer=traced.instruments.tracer)
    with pytest.raises(NotDelivered):
        webhooks.post("http://127.0.0.1/canary", {})

    assert traced.spans["webhook"].attributes == {"error.type": "NotDelivered"}


def test_the_trace_of_a_question_goes_on_at_the_server_that_generates(tmp_path: Path):
    server = CompletionServerStandIn(like_vllm("Two ships [1].", finish_reason="stop"))
    config = RemoteConfig(base_url=server.url, model="served")
    engine = RemoteEngine(config, LetterTokenizer(), context_window=8192, traceparent=traceparent)
    settings = Settings(data_dir=installed(tmp_path / "data"), admin_key=ADMIN_KEY, _env_file=None)
    traced = Traced()
    with build(settings, with_models=False) as bare:
        state = state_with(bare, instruments=traced.instruments)
        models = stations(state, engine, limits=ANY_EVIDENCE)
        app = create_app(lambda: nullcontext(state_with(state, models=models)), version="1")
        models.worker.start()
        with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as client:
            client.post("/v1/documents", json={"text": TEXT, "filename": "a.txt", "wait": 30})
            question = {"question": "How many ships passed the canary house?"}
            answer = client.post("/v1/ask", json=question, headers={"traceparent": CALLER}).json()
        models.worker.stop()
        models.index.close()
        models.lexical.close()
    engine.close()
    server.close()

    assert answer["answered"], answer
    version, trace, parent, sampled = server.replies[0].headers["traceparent"].split("-")
    assert (version, trace, sampled) == ("00", CALLER.split("-")[1], "01")
    assert parent in {f"{span.context.span_id:016x}" for span in traced.spans.values()}


class Sink(BaseHTTPRequestHandler):
    """Takes OTLP over HTTP."""

    taken: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        self.taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A collector's address, and what it is sent: (path, protobuf)."""
    taken: list[tuple[str, bytes]] = []
    with HTTPServer(("127.0.0.1", 0), type("Taking", (Sink,), {"taken": taken})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()
        thread.join()


def test_the_whole_path_is_sent_to_a_collector_without_a_word_of_what_was_said(tmp_path: Path, collector):
    endpoint, taken = collector
    settings = Settings(
        data_dir=installed(tmp_path / "data"), admin_key=ADMIN_KEY, otlp_endpoint=endpoint, _env_file=None
    )
    engine = cast(Engine, TalkingEngine(says="Two ships passed the canary light house [1]."))
    with build(settings, with_models=False) as state:
        models = stations(state, engine, tokenizer=CharacterTokenizer(), limits=ANY_EVIDENCE)
        app = create_app(lambda: nullcontext(state_with(state, models=models)), version="1")
        headers = {"Authorization": f"Bearer {ADMIN_KEY}", "traceparent": CALLER}
        models.worker.start()
        with TestClient(app, headers=headers) as client:
            made = client.post("/v1/documents", json={"text": TEXT, "filename": "canary.txt"}).json()
            models.worker.wake()
            client.get(f"/v1/documents/{made['id']}/events")
            answer = client.post("/v1/ask", json={"question": "How many ships passed the canary house?"}).json()
        models.worker.stop()
        models.index.close()
        models.lexical.close()

    assert answer["answered"], answer
    assert {path for path, _ in taken} == {"/v1/traces"}
    assert not any(b"canary" in body or ADMIN_KEY.encode() in body for _, body in taken)
    spans = [
        span
        for _, body in taken
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    of_caller = {span.name for span in spans if span.trace_id.hex() == CALLER.split("-")[1]}
    assert {
        "POST /v1/documents",
        "POST /v1/ask",
        "authenticate",
        "reserve",
        "retrieve",
        "dense",
        "lexical",
    } <= of_caller
    assert {"fusion", "compress", "read", "prompt", "engine", "decode", "verify", "settle"} <= of_caller
    job = next(span for span in spans if span.name == "ingest")
    assert {"extract", "chunk", "embed", "commit"} == {
        span.name for span in spans if span.parent_span_id == job.span_id
    }
    upload = next(span for span in spans if span.name == "POST /v1/documents")
    assert [link.trace_id for link in job.links] == [upload.trace_id]
    spent = {item.key: item.value.int_value for span in spans if span.name == "engine" for item in span.attributes}
    assert spent["gen_ai.usage.input_tokens"] == answering(answer["usage"])["prompt_tokens"]
    assert spent["gen_ai.usage.output_tokens"] == answer["usage"]["completion_tokens"]
