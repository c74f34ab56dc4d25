"""`python -m tests.bench.ingest.throughput SET`: tokens a second of the whole pipeline beside those of its embedder.

The documents of a question set go through a real application (parser processes, chunking, embedder, SQL, index);
then the embedder alone reads the same chunks, twice, in blocks as large as the pipeline's. One process, one run.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from app.evaluation.dataset import read_question_set
from app.evaluation.scratch import ingest, scratch_application
from app.server.state import State
from app.settings import EXTRACTIVE, load_settings
from ingestion.pipeline import BLOCK_PASSAGES


def measure(folder: Path) -> dict[str, object]:
    """Tokens a second of the pipeline and of the embedder, and their ratio."""
    question_set = read_question_set(folder)
    settings = load_settings(generator=EXTRACTIVE, reader="none")
    with tempfile.TemporaryDirectory() as scratch, scratch_application(settings, data_dir=Path(scratch)) as state:
        assert state.serving.models is not None
        embedder = state.serving.models.embedder
        _rate(state, [document.text[:600] for document in list(question_set.documents.values())[:BLOCK_PASSAGES]])
        ingested = ingest(state, question_set, on_progress=lambda done, total: None)
        texts = _texts(state, ingested.document_ids.values())
        tokens = sum(embedder.count_tokens(text) for text in texts)
        after = [_rate(state, texts), _rate(state, texts)]
    pipeline = tokens / ingested.seconds
    alone = sum(after) / len(after)
    return {
        "set": question_set.name,
        "documents": len(ingested.document_ids),
        "chunks": len(texts),
        "tokens": tokens,
        "pipeline_tokens_per_second": round(pipeline),
        "embedder_tokens_per_second": [round(rate) for rate in after],
        "ratio": round(pipeline / alone, 3),
    }


def _texts(state: State, document_ids: Iterable[str]) -> list[str]:
    """What was embedded of the documents, headings and text."""
    found: list[str] = []
    for document_id in document_ids:
        cursor: str | None = None
        while True:
            chunks, cursor = state.corpus.contents.chunks(document_id, tenant_id="default", limit=500, cursor=cursor)
            found += ["\n".join((*chunk.heading_path, chunk.text)) for chunk in chunks]
            if cursor is None:
                break
    return found


def _rate(state: State, texts: list[str]) -> float:
    """Tokens a second of the embedder alone, block by block."""
    assert state.serving.models is not None
    embedder = state.serving.models.embedder
    tokens = sum(embedder.count_tokens(text) for text in texts)
    began = time.perf_counter()
    for start in range(0, len(texts), BLOCK_PASSAGES):
        embedder.embed_documents(texts[start : start + BLOCK_PASSAGES])
    return tokens / (time.perf_counter() - began)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ingest.throughput", description=__doc__)
    parser.add_argument("folder", type=Path, help="a question set in the BEIR layout")
    print(json.dumps(measure(parser.parse_args().folder), indent=1))


if __name__ == "__main__":
    main()
