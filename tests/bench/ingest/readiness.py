"""`python -m tests.bench.ingest.readiness`: how soon a killed server with many chunks is ready again.

A data dir is filled with documents whose vectors are random, the real server (`footnote serve`, default models) is
started over it, killed without warning, and started again: with the index as it was saved, and with one that lacks
the newest thousandth of the vectors, as after a kill before it was saved. Beside the seconds stand the server's
resident memory when it was ready, and what lies in the data dir. `--words 150` makes chunks as long as prose has them.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import psutil
from rich.progress import track

from app.db.publishing import Version
from app.server.bootstrap import build
from app.server.state import State
from app.settings import EXTRACTIVE, load_settings
from app.types import DEFAULT_TENANT, Principal, Role
from retrieval.ports import Vectors
from tests.app.db.samples import extraction_of

_CHUNKS = 50  # of a document
_TOGETHER = 20  # documents in one transaction
_PRINCIPAL = Principal(DEFAULT_TENANT, "bench", "bench", Role.ADMIN)
_PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.05
_VOCABULARY = 20_000


def measure(chunks: int, *, words: int) -> dict[str, object]:
    """Seconds until ready: the first start, which builds the index, and after two kinds of kill; memory and disk in MB.

    Args:
        chunks: How many the data dir holds.
        words: Added to each chunk's text, drawn from 20,000 by Zipf's law.
    """
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        rng = np.random.default_rng(0)
        documents = chunks // _CHUNKS
        _fill(data_dir, documents - documents // 1000, rng, first=0, words=words)
        starts = {"first_start": _started(data_dir), "after_kill": _started(data_dir)}
        _fill(data_dir, min(documents, max(1, documents // 1000)), rng, first=documents, words=words)
        starts["after_kill_with_new_chunks"] = _started(data_dir)
        disk = {path.name: _bytes(path) / 1e6 for path in sorted(data_dir.iterdir())}
    return {
        "chunks": chunks,
        "documents": documents,
        "ready_seconds": {name: round(seconds, 2) for name, (seconds, _) in starts.items()},
        "resident_mb": {name: round(resident / 1e6) for name, (_, resident) in starts.items()},
        "disk_mb": {name: round(size, 1) for name, size in disk.items()},
    }


def _bytes(path: Path) -> int:
    """What a file, or a folder with everything in it, holds."""
    return sum(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())


def _fill(data_dir: Path, documents: int, rng: np.random.Generator, *, first: int, words: int) -> None:
    """Documents as ingestion leaves them, without the reading."""
    settings = load_settings(data_dir=data_dir, generator=EXTRACTIVE, reader="none")
    with build(settings) as state:
        assert state.serving.models is not None
        state.serving.models.worker.stop()
        generation, info = state.serving.models.index.generation, state.serving.models.embedder.info
        for start in track(range(0, documents, _TOGETHER), description="Filling"):
            numbers = range(first + start, first + min(start + _TOGETHER, documents))
            versions = [
                _version(state, number, generation, _unit(rng, info.dim), _prose(rng, words)) for number in numbers
            ]
            state.corpus.jobs.take_keys({version.job: len(version.passages) for version in versions})
            for result in state.corpus.jobs.commit_all(versions):
                assert result.written


def _version(state: State, number: int, generation: int, vectors: Vectors, prose: list[str]) -> Version:
    texts = [
        f"Record {number}-{place}: the warden counted {number * place} ships.{prose[place]}" for place in range(_CHUNKS)
    ]
    data = "\n\n".join(texts).encode()
    received = state.corpus.files.spool.receive([data], name=f"bench-{number}", limit=len(data))
    state.corpus.intake.accept(
        received,
        filename=f"{number}.txt",
        principal=_PRINCIPAL,
        collection_id=state.corpus.collections.default(DEFAULT_TENANT).id,
        external_id=None,
        metadata={},
        on_duplicate="error",
    )
    claimed = state.corpus.jobs.claim("bench")
    assert claimed is not None
    extraction, passages = extraction_of(texts)
    return Version(
        job=claimed[0],
        extraction=extraction,
        passages=passages,
        vectors=vectors,
        generation=generation,
        embedding_tokens=sum(passage.token_count for passage in passages),
    )


def _prose(rng: np.random.Generator, words: int) -> list[str]:
    """A document's chunks of so many words; a word has six letters, as English ones with their space nearly do."""
    numbers = rng.zipf(1.2, size=(_CHUNKS, words)) % _VOCABULARY
    return ["".join(f" w{number:05d}" for number in row) for row in numbers]


def _unit(rng: np.random.Generator, dim: int) -> Vectors:
    rows = rng.standard_normal((_CHUNKS, dim), dtype=np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _started(data_dir: Path) -> tuple[float, int]:
    """Seconds from starting the server until it says it is ready, and its resident bytes then; then it is killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "FOOTNOTE_DATA_DIR": str(data_dir), "FOOTNOTE_PORT": str(port)}
    command = [str(Path(sys.executable).with_name("footnote")), "serve"]
    began = time.perf_counter()
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            while True:
                assert server.poll() is None, "the server did not start"
                assert time.perf_counter() - began < _PATIENCE_SECONDS, "the server is not ready"
                try:
                    if client.get("/readyz").status_code == httpx.codes.OK:
                        return time.perf_counter() - began, psutil.Process(server.pid).memory_info().rss
                except httpx.TransportError:
                    time.sleep(_POLL_SECONDS)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ingest.readiness", description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=0)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.chunks, words=arguments.words), indent=1))


if __name__ == "__main__":
    main()
