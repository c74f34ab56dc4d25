"""app.telemetry: the engine's counters in Prometheus' format, and log lines that cannot be written."""

import errno
import io
import logging
import math
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest
import structlog
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.server.collectors import EngineCollector
from app.telemetry.logs import configure_logging
from app.telemetry.metrics import Metrics
from generation.ports import Observer, Stream
from generation.types import EngineStats, GenerationRequest, Histogram, ModelInfo, ServingPath

COUNTED = EngineStats(
    waiting=3,
    running=2,
    capacity=8,
    prefill_tokens=100,
    decode_tokens=50,
    requests=7,
    cancelled=1,
    cached_tokens=40,
    drafted_tokens=30,
    accepted_tokens=20,
    preemptions=4,
    restarts=5,
    free_blocks=10,
    used_blocks=11,
    cached_blocks=12,
    block_tokens=16,
    block_bytes=4096,
    given_back_bytes=8192,
    first_token_s=Histogram((0.05, 0.5, math.inf), (2, 3, 1), 7.25),
    inter_token_s=Histogram((0.01, math.inf), (0, 9), 0.5),
    path=ServingPath(layout="pages", kernels="triton", graphs=True, speculation=False, slower=()),
)


class CountingEngine:
    """An engine with fixed counts."""

    info = ModelInfo(model="m", revision="r", context_window=64, device="cpu", dtype="float32")

    def __init__(self, counts: EngineStats, *, alive: bool = True) -> None:
        self._counts, self._alive = counts, alive

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        raise AssertionError("a scrape asks for nothing")

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        return 0

    def stats(self) -> EngineStats:
        return self._counts

    def alive(self) -> bool:
        return self._alive

    def close(self) -> None:
        return None


def scraped(engine: CountingEngine) -> dict[str, float]:
    """Sample, with its labels, to value."""
    metrics = Metrics()
    metrics.register(EngineCollector(engine))
    samples = {}
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sample.labels.items())
            samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return {name.removeprefix("footnote_engine_"): value for name, value in samples.items() if "_engine_" in name}


def test_every_count_of_the_engine_is_on_the_page() -> None:
    assert scraped(CountingEngine(COUNTED)) == {
        "waiting": 3,
        "running": 2,
        "capacity": 8,
        "up": 1,
        "prefill_tokens_total": 100,
        "cached_tokens_total": 40,
        "decode_tokens_total": 50,
        "drafted_tokens_total": 30,
        "accepted_tokens_total": 20,
        "requests_total": 7,
        "cancelled_total": 1,
        "preemptions_total": 4,
        "restarts_total": 5,
        "block_tokens": 16,
        "block_bytes": 4096,
        "given_back_bytes_total": 8192,
        "path_info{device=cpu,dtype=float32,fastest=yes,graphs=on,kernels=triton,layout=pages,speculation=off}": 1,
        "blocks{state=free}": 10,
        "blocks{state=used}": 11,
        "blocks{state=cached}": 12,
        "first_token_seconds_bucket{le=0.05}": 2,
        "first_token_seconds_bucket{le=0.5}": 5,
        "first_token_seconds_bucket{le=+Inf}": 6,
        "first_token_seconds_count": 6,
        "first_token_seconds_sum": 7.25,
        "inter_token_seconds_bucket{le=0.01}": 0,
        "inter_token_seconds_bucket{le=+Inf}": 9,
        "inter_token_seconds_count": 9,
        "inter_token_seconds_sum": 0.5,
    }


def test_an_engine_that_measures_no_latency_reports_none_and_a_dead_one_is_down() -> None:
    samples = scraped(CountingEngine(replace(COUNTED, first_token_s=None, inter_token_s=None), alive=False))

    assert samples["up"] == 0
    assert not [name for name in samples if "seconds" in name]


class FullDisk(io.StringIO):
    """A log on a disk that has no room for the first write."""

    full = True

    def write(self, text: str, /) -> int:
        if self.full:
            self.full = False
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_a_line_without_room_is_lost_and_nothing_quotes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    log = FullDisk()
    monkeypatch.setattr(sys, "stderr", log)
    configure_logging(level="info", json=True)
    try:
        logging.getLogger("library").warning("read %s", "a secret")
    finally:
        structlog.reset_defaults()

    assert not log.full
    assert log.getvalue() == ""
