"""`python -m tests.bench.ingest.readiness`: how soon a killed server with many chunks is ready again.

A data dir is filled with documents whose vectors are random, the real server (`footnote serve`, default models) is
started over it, killed without warning, and started again: with the index as it was saved, and with one that lacks
the newest thousandth of the vectors, as after a kill before it was saved.
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
from rich.progress import track

from app.bootstrap import DEFAULT_TENANT, build
from app.db.commits import Version
from app.settings import EXTRACTIVE, load_settings
from app.state import State
from app.types import Principal, Role
from retrieval.ports import Vectors
from tests.app.db.samples import extraction_of

_CHUNKS = 50  # of a document
_TOGETHER = 20  # documents in one transaction
_PRINCIPAL = Principal(DEFAULT_TENANT, "bench", "bench", Role.ADMIN)
_PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.05


def measure(chunks: int) -> dict[str, object]:
    """Seconds until ready: the first start, which builds the index, and after two kinds of kill."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        rng = np.random.default_rng(0)
        documents = chunks // _CHUNKS
        _fill(data_dir, documents - documents // 1000, rng, first=0)
        seconds = {"first_start": _started(data_dir), "after_kill": _started(data_dir)}
        _fill(data_dir, max(1, documents // 1000), rng, first=documents)
        seconds["after_kill_with_new_chunks"] = _started(data_dir)
    return {"chunks": chunks, "documents": documents, "ready_seconds": {k: round(v, 2) for k, v in seconds.items()}}


def _fill(data_dir: Path, documents: int, rng: np.random.Generator, *, first: int) -> None:
    """Documents as ingestion leaves them, without the reading."""
    settings = load_settings(data_dir=data_dir, generator=EXTRACTIVE, reader="none")
    with build(settings) as state:
        assert state.models is not None
        state.models.worker.stop()
        generation, info = state.models.index.generation, state.models.embedder.info
        for start in track(range(0, documents, _TOGETHER), description="Filling"):
            numbers = range(first + start, first + min(start + _TOGETHER, documents))
            versions = [_version(state, number, generation, _unit(rng, info.dim)) for number in numbers]
            for result in state.jobs.commit_all(versions):
                assert result.written


def _version(state: State, number: int, generation: int, vectors: Vectors) -> Version:
    texts = [f"Record {number}-{place}: the warden counted {number * place} ships." for place in range(_CHUNKS)]
    data = "\n\n".join(texts).encode()
    received = state.files.receive([data], name=f"bench-{number}", limit=len(data))
    state.intake.accept(
        received,
        filename=f"{number}.txt",
        principal=_PRINCIPAL,
        collection_id=state.collections.default(DEFAULT_TENANT).id,
        external_id=None,
        metadata={},
        on_duplicate="error",
    )
    claimed = state.jobs.claim("bench")
    assert claimed is not None
    extraction, passages = extraction_of(texts)
    return Version(
        job_id=claimed[0].id,
        extraction=extraction,
        passages=passages,
        vectors=vectors,
        generation=generation,
        embedding_tokens=sum(passage.token_count for passage in passages),
    )


def _unit(rng: np.random.Generator, dim: int) -> Vectors:
    rows = rng.standard_normal((_CHUNKS, dim), dtype=np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _started(data_dir: Path) -> float:
    """Seconds from starting the server until it says it is ready; then it is killed."""
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
                        return time.perf_counter() - began
                except httpx.TransportError:
                    time.sleep(_POLL_SECONDS)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ingest.readiness", description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    print(json.dumps(measure(parser.parse_args().chunks), indent=1))


if __name__ == "__main__":
    main()
