"""`python -m tests.bench.service.stream_times FOLDER`: how long one waits for each part of a streamed answer.

A server with the default models on an empty data dir, one document of FOLDER, and plain questions, each asked once and
one after another. Of half of them the time from the request to `sources`, to the first quote and to `done` is taken.
The others are cancelled when their sources arrive, and timed from the cancellation to the last event. Every question
gets its hits, evidence or not, and only asks that the span reader reads count.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.bench.service.plain_questions.asking import upload
from tests.bench.service.plain_questions.questions import load, select
from tests.server import Server

_NAMED = "X-Request-Id"


@dataclass(slots=True)
class Streamed:
    """One streamed ask: when the first event of each name arrived, by `time.perf_counter`, and how it ended."""

    began: float
    arrived: dict[str, float] = field(default_factory=dict)
    cancelled_at: float | None = None
    finish_reason: str = ""
    hits: int = 0
    read_tokens: int = 0

    def seconds(self, name: str) -> float:
        """Seconds from the request to the first event of that name."""
        return self.arrived[name] - self.began

    def add(self, name: str, data: Any) -> None:
        """Note an event that has just arrived."""
        self.arrived.setdefault(name, time.perf_counter())
        match name:
            case "sources":
                self.hits = data["retrieved"]
            case "usage":
                self.read_tokens = sum(one["tokens"] for one in data["auxiliary"] if one["purpose"] == "locate")
            case "done":
                self.finish_reason = data["finish_reason"]


def ask(server: Server, question: str, *, cancel: bool = False) -> Streamed:
    """Ask and read to the end; with `cancel` it is cancelled when the sources arrive."""
    found = Streamed(time.perf_counter())
    with server.http.stream("POST", "/v1/ask", json={"question": question, "stream": True}) as response:
        for name, data in events_of(response):
            found.add(name, data)
            if cancel and name == "sources":
                found.cancelled_at = time.perf_counter()
                server.http.post(f"/v1/requests/{response.headers[_NAMED]}/cancel")
    return found


def events_of(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    """The name and the data of each server-sent event."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def told(asked: Sequence[Streamed], cancelled: Sequence[Streamed]) -> dict[str, Any]:
    """The figures, in seconds."""
    read = [one for one in asked if one.read_tokens]
    stopped = [one for one in cancelled if one.finish_reason == "cancelled"]
    return {
        "asks": len(asked),
        "read": len(read),
        "hits": statistics.median(one.hits for one in read),
        "read_tokens": statistics.median(one.read_tokens for one in read),
        "sources_s": _spread([one.seconds("sources") for one in read]),
        "first_quote_s": _spread([one.seconds("delta") for one in read]),
        "done_s": _spread([one.seconds("done") for one in read]),
        "cancellations": len(cancelled),
        "cancelled": len(stopped),
        "cancel_to_done_s": _spread([one.arrived["done"] - (one.cancelled_at or 0.0) for one in stopped]),
        "read_tokens_when_cancelled": statistics.median(one.read_tokens for one in stopped) if stopped else None,
    }


def measure(folder: Path, document: str, questions: Sequence[str]) -> dict[str, Any]:
    """The figures of one server; the first question, which also warms the models, does not count."""
    with tempfile.TemporaryDirectory(prefix="footnote-stream-") as made:
        server = Server(Path(made) / "data", min_evidence=-1)
        try:
            server.start()
            upload(server, folder, [document])
            ask(server, questions[0])
            asked = [ask(server, question) for question in questions[1::2]]
            cancelled = [ask(server, question, cancel=True) for question in questions[2::2]]
            server.stop()
        finally:
            server.close()
    return {"document": document, **told(asked, cancelled)}


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    """The median, and the time within which 19 of 20 came."""
    if not seconds:
        return {}
    ordered = sorted(seconds)
    return {"median": round(statistics.median(ordered), 3), "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 3)}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.stream_times", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of documents, with pdf/, docx/ and so on")
    parser.add_argument("--document", default="pdf/apple_10q_2022q3.pdf", help="the one that is asked about")
    parser.add_argument("--asks", type=int, default=30, help="so many are read to the end, and as many are cancelled")
    chosen = parser.parse_args()
    questions = select(load(), half="building", limit=2 * chosen.asks + 1)
    print(json.dumps(measure(chosen.folder, chosen.document, [one.text for one in questions]), indent=1))


if __name__ == "__main__":
    main()
