"""`python -m tests.bench.ingest.many`: whether many small documents are ingested at the same pace to the end.

A real worker over a scratch data dir, with an embedder that costs next to nothing: what is measured is what
Footnote adds to each document, in SQL, indexes and threads.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import psutil

from app.db.migration import upgrade
from app.db.session import Database
from ingestion.pipeline import BLOCK_PASSAGES
from tests.app.db.samples import Library
from tests.app.jobs.bench import Bench

_POLL_SECONDS = 0.05


def measure(documents: int) -> dict[str, object]:
    """Documents a second of the first and the last tenth, and resident memory (MiB) at the two moments."""
    process = psutil.Process()
    tenth = max(1, documents // 10)
    with tempfile.TemporaryDirectory() as folder:
        database = Database.open(f"sqlite:///{Path(folder) / 'footnote.db'}")
        upgrade(database)
        bench = Bench(Library(database), Path(folder), parsers=2, block_passages=BLOCK_PASSAGES)
        for number in range(documents):
            bench.upload(f"Record {number}: the warden counted {number * 7} ships from the lighthouse.")
        began = time.perf_counter()
        bench.worker.start()
        marks: dict[int, tuple[float, float]] = {0: (began, process.memory_info().rss / 2**20)}
        wanted = [tenth, documents - tenth, documents]
        while wanted:
            done = len(bench.index)
            while wanted and done >= wanted[0]:
                marks[wanted.pop(0)] = (time.perf_counter(), process.memory_info().rss / 2**20)
            time.sleep(_POLL_SECONDS)
        bench.worker.stop()
        calls = len(bench.embedder.calls)
        database.close()
    first = tenth / (marks[tenth][0] - began)
    last = tenth / (marks[documents][0] - marks[documents - tenth][0])
    return {
        "documents": documents,
        "seconds": round(marks[documents][0] - began, 2),
        "first_tenth_per_second": round(first, 1),
        "last_tenth_per_second": round(last, 1),
        "last_over_first": round(last / first, 3),
        "embedder_calls": calls,
        "memory_mib": {"after_first_tenth": round(marks[tenth][1]), "at_the_end": round(marks[documents][1])},
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ingest.many", description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    print(json.dumps(measure(parser.parse_args().documents), indent=1))


if __name__ == "__main__":
    main()
