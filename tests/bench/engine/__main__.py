"""`make bench-engine`: the engine beside its peers, interleaved in one run, as JSON.

Equality comes first: where a peer is greedy on the same weights, its tokens are compared, and a speed
without the same tokens is not reported. Every section prints as it ends and is kept if a later one fails.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from app.models.folder import resolve
from app.settings import DEFAULT_GENERATOR, load_settings
from tests.bench.engine.bench import Bench
from tests.bench.engine.peers import continuous_batching, eight_streams, llama_cpp_peer, one_stream, prefill
from tests.bench.engine.report import Report
from tests.bench.engine.reuse import reuse
from tests.bench.engine.speculation import speculation
from tests.bench.engine.steps import overhead, stalls

SECTIONS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "one stream": one_stream,
    "eight streams": eight_streams,
    "llama.cpp": llama_cpp_peer,
    "prefill": prefill,
    "reuse": reuse,
    "speculation": speculation,
    "stalls": stalls,
    "overhead": overhead,
    "continuous batching": continuous_batching,
}


def main() -> None:
    """Run the sections asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.engine", description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    asked = parser.parse_args()
    bench = Bench(resolve(DEFAULT_GENERATOR, models_dir=load_settings().models_dir))
    report = Report(bench.machine, out=asked.out)
    for name in asked.only:
        report.measure(name, partial(SECTIONS[name], bench))


if __name__ == "__main__":
    main()
