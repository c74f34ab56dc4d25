"""The shipped dashboard and alerts use metrics that exist and are documented."""

import json
import re
import time
from pathlib import Path

import pytest
import structlog
import yaml
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from app.server.collectors import EngineCollector, IndexCollector
from app.telemetry.metrics import Metrics
from app.telemetry.timing import Activity, timed
from tests.app.telemetry.test_logs import COUNTED, CountingEngine

DOCS = Path(__file__).parents[3] / "docs"
_OURS = re.compile(r"\b(?:footnote|process)_[a-z_]+")
_EXPORTED_BY_PROMETHEUS = {"up"}


@pytest.fixture
def exported(client, state) -> set[str]:
    """Every sample name of an application in use: a histogram has its suffixes, a counter its own."""
    state.telemetry.metrics.register(EngineCollector(CountingEngine(COUNTED)))
    state.telemetry.metrics.register(IndexCollector(lambda: 1))
    names = set()
    for family in text_string_to_metric_families(client.get("/metrics").text):
        names |= {family.name, *(sample.name for sample in family.samples)}
        names |= {
            f"{family.name}_{end}"
            for end in {"counter": ["total"], "histogram": ["bucket", "sum", "count"]}.get(family.type, [])
        }
    return names


def expressions() -> list[str]:
    dashboard = json.loads((DOCS / "grafana" / "footnote.json").read_text())
    alerts = yaml.safe_load((DOCS / "grafana" / "alerts.yml").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    assert len(asked) > 30
    return asked


def test_every_metric_of_the_dashboard_and_the_alerts_is_exported(exported):
    asked = {name for expression in expressions() for name in _OURS.findall(expression)}

    assert asked - exported == set()


def test_every_metric_of_ours_stands_in_the_operations_manual(exported):
    manual = (DOCS / "OPERATIONS.md").read_text()
    families = {name for name in exported if name.startswith("footnote_")}
    families -= {name for name in families if name.endswith(("_bucket", "_sum", "_count", "_created"))}
    written = {name.removesuffix("_total") for name in families}

    assert {name for name in written if f"`{name}" not in manual} == set()


def test_expressions_are_balanced():
    for expression in expressions():
        assert expression.count("(") == expression.count(")"), expression
        assert expression.count("{") == expression.count("}"), expression


def test_a_request_is_counted_by_its_template_and_problem_and_its_stations_are_timed(client, state):
    client.get("/v1/documents/doc_unknown")

    page = client.get("/metrics").text
    assert 'footnote_http_requests_total{method="GET",route="/v1/documents/{document_id}",status="404"} 1.0' in page
    assert 'footnote_problems_total{problem="not-found"} 1.0' in page
    assert 'footnote_station_seconds_count{station="authenticate"}' in page
    assert "doc_unknown" not in page


def test_a_station_costs_microseconds():
    """The best of several runs of 2,000: neighbours on the machine only ever add."""
    metrics, best = Metrics(), float("inf")
    with Activity(metrics.station).active():
        for _ in range(5):
            started = time.perf_counter()
            for _ in range(2000):
                with timed("dense"):
                    pass
            best = min(best, (time.perf_counter() - started) / 2000)

    assert best < 20e-6


def test_a_request_leaves_one_line_with_its_template_and_who_asked(client):
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        response = client.get("/v1/documents/doc_unknown?limit=secret")

    (line,) = [line for line in lines if line["event"] == "request"]
    assert line["request_id"] == response.headers["X-Request-Id"]
    assert (line["method"], line["route"], line["status"]) == ("GET", "/v1/documents/{document_id}", 404)
    assert (line["tenant"], line["problem"]) == ("default", "not-found")
    assert line["key_id"].startswith("key_")
    assert "secret" not in str(line)
    assert "doc_unknown" not in str(line)
