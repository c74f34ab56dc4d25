"""tests.bench.service.stream_times: what counts, and from when."""

from tests.bench.service.stream_times import Streamed, told


def streamed(began: float, *, read_tokens: int = 9, cancelled_at: float | None = None, **arrived: float) -> Streamed:
    ended = "stop" if cancelled_at is None else "cancelled"
    return Streamed(began, arrived, cancelled_at=cancelled_at, finish_reason=ended, hits=8, read_tokens=read_tokens)


def test_waits_count_from_the_request_and_a_cancellations_from_itself() -> None:
    figures = told(
        [streamed(10.0, sources=10.25, delta=11.0, done=11.5), streamed(20.0, read_tokens=0, sources=21.0, done=29.0)],
        [streamed(30.0, cancelled_at=30.5, sources=30.5, done=30.75), streamed(40.0, sources=40.5, done=49.0)],
    )

    assert (figures["asks"], figures["read"], figures["cancellations"], figures["cancelled"]) == (2, 1, 2, 1)
    assert figures["sources_s"] == {"median": 0.25, "p95": 0.25}
    assert figures["first_quote_s"] == {"median": 1.0, "p95": 1.0}
    assert figures["done_s"] == {"median": 1.5, "p95": 1.5}
    assert figures["cancel_to_done_s"] == {"median": 0.25, "p95": 0.25}
