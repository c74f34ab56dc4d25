"""The supervisor's totals over all its engines, its restart pauses and its own cost."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.backoff import Backoff
from generation.ports import Engine
from generation.supervisor import SupervisedEngine
from generation.types import EngineStats, Histogram
from tests.generation.fakes import wait_until
from tests.generation.supervised import IDLE, Factory, FakeEngine, free_nothing, supervise

__all__ = ["supervise"]


def test_watching_costs_next_to_no_processor_time(supervise: Callable[..., SupervisedEngine]) -> None:
    others = set(threading.enumerate())
    engine = supervise(Factory(FakeEngine()))
    (watcher,) = (one for one in set(threading.enumerate()) - others if one.name == "footnote-supervisor")
    assert watcher.ident is not None

    time.sleep(0.5)

    assert time.clock_gettime(time.pthread_getcpuclockid(watcher.ident)) < 0.1
    assert engine.alive()


BLOCKS = {"free_blocks", "used_blocks", "cached_blocks", "block_tokens", "block_bytes"}


PRESENT = {"waiting", "waiting_tokens", "running", "capacity", "path"} | BLOCKS


LATENCIES = {"first_token_s", "inter_token_s"}


TOTALS = {field.name for field in fields(EngineStats)} - PRESENT - LATENCIES


totals = st.fixed_dictionaries({name: st.integers(0, 10**6) for name in sorted(TOTALS)})


histograms = st.none() | st.builds(
    Histogram,
    bounds=st.just((0.1, 1.0, math.inf)),
    counts=st.tuples(*[st.integers(0, 1000)] * 3),
    total_s=st.floats(0, 1000),
)


@settings(deadline=None, max_examples=10)
@given(lives=st.lists(st.tuples(totals, histograms, histograms), min_size=2, max_size=3))
def test_every_total_is_the_sum_over_all_engines_at_every_moment(
    lives: list[tuple[dict[str, Any], Histogram | None, Histogram | None]],
) -> None:
    engines = [
        FakeEngine(replace(IDLE, **counted, first_token_s=first, inter_token_s=inter))
        for counted, first, inter in lives
    ]
    engine = SupervisedEngine(
        Factory(*engines), backoff=Backoff(first_s=0.001, longest_s=30.0), watch_s=0.001, free=free_nothing
    )
    try:
        for number, inner in enumerate(engines[:-1]):
            inner.dead = True
            wait_until(lambda: engine.stats().restarts >= _restarts(lives, number) + number + 1)  # noqa: B023
        wait_until(engine.alive)

        seen = engine.stats()
        for name in lives[0][0]:
            own = len(lives) - 1 if name == "restarts" else 0
            assert getattr(seen, name) == sum(counted[name] for counted, _, _ in lives) + own
        for seen_one, each in (
            (seen.first_token_s, [life[1] for life in lives]),
            (seen.inter_token_s, [life[2] for life in lives]),
        ):
            given_ones = [one for one in each if one is not None]
            assert (seen_one is None) == (not given_ones)
            if seen_one is not None:
                assert seen_one.counts == tuple(map(sum, zip(*(one.counts for one in given_ones), strict=True)))
                assert seen_one.total_s == pytest.approx(sum(one.total_s for one in given_ones))
    finally:
        engine.close()


def _restarts(lives: list[tuple[dict[str, Any], Histogram | None, Histogram | None]], number: int) -> int:
    return sum(counted["restarts"] for counted, _, _ in lives[: number + 2])


def test_a_count_added_to_the_stats_is_a_total_until_someone_says_it_is_not() -> None:
    assert {
        "prefill_tokens",
        "decode_tokens",
        "requests",
        "cancelled",
        "cached_tokens",
        "drafted_tokens",
        "accepted_tokens",
        "preemptions",
        "recomputed_tokens",
        "restarts",
        "unread_tokens",
        "given_back_bytes",
    } == TOTALS


def test_totals_never_go_down_while_engines_come_and_go(supervise: Callable[..., SupervisedEngine]) -> None:
    """Read all the time from another thread, with engines that count up and die."""
    engines: list[FakeEngine] = []

    def factory() -> Engine:
        engines.append(FakeEngine())
        return engines[-1]

    engine = supervise(factory, Backoff(first_s=0.001, longest_s=0.002))
    seen: list[tuple[int, int]] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            stats = engine.stats()
            seen.append((stats.requests, stats.restarts))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for death in range(4):
        current = engines[-1]
        for requests in range(1, 20):
            current.counts = replace(current.counts, requests=requests)
            time.sleep(0.001)
        current.dead = True
        wait_until(lambda: engine.stats().restarts == death + 1)  # noqa: B023
    stop.set()
    watcher.join()

    requests_seen, restarts_seen = zip(*seen, strict=True)
    assert list(requests_seen) == sorted(requests_seen)
    assert list(restarts_seen) == sorted(restarts_seen)
    assert engine.stats().requests == 4 * 19
