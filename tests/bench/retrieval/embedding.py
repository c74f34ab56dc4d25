"""Passages embedded in a second beside `SentenceTransformer.encode` defaults, interleaved in one run, as JSON.

How close the vectors stay to float32 comes with it: a speed without its cosine is not reported. Seconds
are of the clock, so that waiting between threads counts; a ratio holds only on a machine with nothing else to do.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from rich.console import Console

from app.models.folder import resolve
from app.settings import DEFAULT_EMBEDDER, load_settings
from retrieval.encoder import Dtype, SentenceEncoder
from tests.bench.machine import description, median

console = Console()
DTYPES: tuple[Dtype, ...] = ("float32", "int8")


def measure(texts: list[str], *, rounds: int) -> dict[str, Any]:
    """Passages per second by subject, ratios to the library round by round, cosines to its vectors."""
    from sentence_transformers import SentenceTransformer

    folder = resolve(DEFAULT_EMBEDDER, models_dir=load_settings().models_dir)
    peer = SentenceTransformer(folder, device="cpu", local_files_only=True)
    subjects: dict[str, Callable[[list[str]], Any]] = {
        "encode": lambda part: peer.encode(part, show_progress_bar=False)
    }
    for dtype in DTYPES:
        subjects[dtype] = SentenceEncoder.load(folder, device="cpu", dtype=dtype).embed_documents
    rates: dict[str, list[float]] = {name: [] for name in subjects}
    cosines: dict[str, list[float]] = {name: [] for name in DTYPES}
    for embed in subjects.values():
        embed(texts[:2])
    for number in range(rounds):
        part = texts[number::rounds]
        rows: dict[str, Any] = {}
        for name, embed in subjects.items():
            started = time.perf_counter()
            rows[name] = embed(part)
            rates[name].append(len(part) / (time.perf_counter() - started))
        for name, found in cosines.items():
            found.extend((rows[name] * rows["encode"]).sum(axis=1).tolist())
    return {
        "passages_per_s": {name: round(median(values), 2) for name, values in rates.items()},
        "ratio to encode": {
            name: round(median([mine / theirs for mine, theirs in zip(rates[name], rates["encode"], strict=True)]), 3)
            for name in DTYPES
        },
        "cosine to encode": {
            name: {"mean": round(float(np.mean(found)), 5), "min": round(min(found), 5)}
            for name, found in cosines.items()
        },
    }


def main() -> None:
    """Measure on one and on all threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="corpus.jsonl of a question set")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--passages", type=int, default=1216)
    parser.add_argument("--rounds", type=int, default=8)
    asked = parser.parse_args()
    lines = [json.loads(line) for line in asked.corpus.read_text(encoding="utf-8").splitlines()]
    texts = [f"{line['title']} {line['text']}".strip() for line in lines[:: max(1, len(lines) // asked.passages)]]
    texts = texts[: asked.passages]
    report: dict[str, Any] = {"machine": description(), "passages": len(texts)}
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        report[f"threads {threads}"] = measure(texts, rounds=asked.rounds) | {
            "load_after": round(psutil.getloadavg()[0], 2)
        }
        console.print_json(data=report)
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
