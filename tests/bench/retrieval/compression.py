"""What compression keeps of retrieved evidence, by what sentences compete by, as JSON.

    python -m tests.bench.retrieval.compression SET… [--questions 200] [--vectors FOLDER]

Questions are taken by stride, passages cut by the product's chunker, hits the eight best by BM25 or,
where FOLDER has `SET.npz` (chunk `vectors` and their questions' `q_ids`, `q_vectors`), by .6 cosine
and .4 BM25, each scaled to [0, 1] over the set. Kept is a gold span with every character still there,
a gold answer that still stands in one source; what was not retrieved does not count.
"""

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from app.models.folder import resolve
from app.settings import DEFAULT_EMBEDDER, DEFAULT_GENERATOR, load_settings
from app.tuning.bm25 import Bm25
from generation.tokenizer import ChatTokenizer
from ingestion.chunking import Chunker
from ingestion.types import Block, BlockKind, Extraction, MediaType
from retrieval.compress import compress
from retrieval.relevance import Worth, odds
from retrieval.types import Chunk, Context, Hit, Scores, Span

DATA = Path("../shared/data")
TOP_K, SHARES = 8, (50, 25)
SHIFT = 1000  # offsets of a title before its text stay above 0


def by_rank(*, rank: int, closeness: float, share: float, best_share: float, tokens: int) -> float:
    """Every hit before the next, sentences in order: what a cut at the budget would keep."""
    worth: float = 1e-3**rank * (tokens + 2) ** 0.7
    return worth


def by_overlap(*, rank: int, closeness: float, share: float, best_share: float, tokens: int) -> float:
    """Words of the question alone."""
    return share + 1e-3


VARIANTS: dict[str, Worth] = {"rank": by_rank, "overlap": by_overlap, "odds": odds}


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its hits, and the evidence they hold."""

    query: str
    hits: tuple[Hit, ...]
    answers: tuple[str, ...]
    spans: tuple[tuple[str, Span], ...]


def cases(name: str, *, questions: int, chunker: Chunker, vectors: Path | None) -> list[Case]:
    """Questions of a set that have evidence, searched."""
    chunks = [chunk for row in _rows(name, "corpus") for chunk in _chunks(row, chunker)]
    chunks = [replace(chunk, key=key, id=str(key), ordinal=key) for key, chunk in enumerate(chunks)]
    gold: dict[str, list[tuple[str, Span]]] = defaultdict(list)
    if (DATA / name / "spans.jsonl").exists():
        for row in _rows(name, "spans"):
            gold[row["query_id"]].append((row["corpus_id"], Span(row["start"] + SHIFT, row["end"] + SHIFT)))
    asked = [row for row in _rows(name, "queries") if not row.get("unanswerable")]
    asked = [row for row in asked if row.get("answers") or row["_id"] in gold]
    dense: Callable[[str], npt.NDArray[np.float32]] | None = None
    if vectors is not None and (vectors / f"{name}.npz").exists():
        stored = np.load(vectors / f"{name}.npz")
        assert len(stored["vectors"]) == len(chunks), "vectors are of these chunks"
        queries, matrix = dict(zip(stored["q_ids"].tolist(), stored["q_vectors"], strict=True)), stored["vectors"]
        asked = [row for row in asked if row["_id"] in queries]

        def dense(query_id: str) -> npt.NDArray[np.float32]:
            cosines: npt.NDArray[np.float32] = matrix @ queries[query_id]
            return cosines

    lexical = Bm25([" ".join((*chunk.heading_path, chunk.text)) for chunk in chunks])
    step = max(1, len(asked) / questions)
    found = []
    for row in (asked[int(at * step)] for at in range(min(questions, len(asked)))):
        scores = lexical.scores(row["text"])
        if dense is not None:
            scores = 0.6 * _scaled(dense(row["_id"])) + 0.4 * _scaled(scores)
        best = np.argsort(-scores, kind="stable")[:TOP_K]
        hits = tuple(Hit(chunks[at], Scores(fused=float(scores[at]))) for at in best)
        found.append(_case(row, hits, gold[row["_id"]]))
    return found


def kept(case: Case, context: Context) -> tuple[list[bool], list[bool]]:
    """Of each retrieved span, and of the retrieved answer if there is one, whether it is still there."""
    passages: dict[str, list[Span]] = defaultdict(list)
    for source in context.sources:
        passages[source.hit.chunk.document_id] += source.spans
    spans = [_holds(passages[document], span, case.hits) for document, span in case.spans]
    bodies = [_folded(source.body) for source in context.sources]
    answers = [any(answer in body for answer in case.answers for body in bodies)] if case.answers else []
    return spans, answers


def measure(found: Sequence[Case], count: Callable[[str], int], worth: Worth, share: int) -> dict[str, Any]:
    """Shares kept at `share` per cent of the hits' own tokens."""
    spans, answers, seconds, tokens = [], [], [], []
    for case in found:
        retrieved = sum(count(hit.chunk.text) for hit in case.hits)
        started = time.perf_counter()
        context = compress(
            case.hits, query=case.query, budget=retrieved * share // 100, count_tokens=count, worth=worth
        )
        seconds.append(time.perf_counter() - started)
        tokens.append(context.tokens / retrieved)
        of_spans, of_answers = kept(case, context)
        spans += of_spans
        answers += of_answers
    return {
        "spans": round(float(np.mean(spans)), 3) if spans else None,
        "answers": round(float(np.mean(answers)), 3) if answers else None,
        "n": (len(spans), len(answers)),
        "tokens": round(float(np.mean(tokens)), 3),
        "median_ms": round(1000 * float(np.median(seconds)), 1),
    }


def main() -> None:
    """Print one JSON object a set as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="SET")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--vectors", type=Path)
    asked = parser.parse_args()
    models_dir = load_settings().models_dir
    embedder = Tokenizer.from_file(str(Path(resolve(DEFAULT_EMBEDDER, models_dir=models_dir)) / "tokenizer.json"))
    chunker = Chunker(embedder, max_tokens=256, overlap=32)
    count = ChatTokenizer.load(resolve(DEFAULT_GENERATOR, models_dir=models_dir)).count
    for name in asked.sets:
        found = cases(name, questions=asked.questions, chunker=chunker, vectors=asked.vectors)
        scored = {
            f"{share} %": {variant: measure(found, count, worth, share) for variant, worth in VARIANTS.items()}
            for share in SHARES
        }
        print(json.dumps({"set": name, "questions": len(found)} | scored), flush=True)


def _rows(name: str, part: str) -> list[dict[str, Any]]:
    with (DATA / name / f"{part}.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def _chunks(row: Mapping[str, Any], chunker: Chunker) -> list[Chunk]:
    """A passage as the product ingests it: its title is a heading. Offsets are those of the text, plus `SHIFT`."""
    title = " ".join((row.get("title") or "").split())
    head = f"{title}\n\n" if title else ""
    text = head + row["text"]
    path = (title,) if title else ()
    blocks = [Block(BlockKind.HEADING, 0, len(title), None, ())] if title else []
    if row["text"].strip():
        blocks.append(Block(BlockKind.PARAGRAPH, len(head), len(text), None, path))
    extraction = Extraction(media_type=next(iter(MediaType)), title=title, text=text, pages=(), blocks=tuple(blocks))
    return [
        Chunk(
            key=0,
            id="",
            document_id=row["_id"],
            version=1,
            collection_id="",
            filename=f"{title[:60] or row['_id']}.txt",
            external_id=None,
            ordinal=0,
            text=passage.text,
            start_char=passage.start_char - len(head) + SHIFT,
            end_char=passage.end_char - len(head) + SHIFT,
            page_start=None,
            page_end=None,
            heading_path=passage.heading_path,
            token_count=passage.token_count,
        )
        for passage in chunker.chunk(extraction)
    ]


def _case(row: Mapping[str, Any], hits: tuple[Hit, ...], gold: Sequence[tuple[str, Span]]) -> Case:
    whole: dict[str, list[Span]] = defaultdict(list)
    for hit in hits:
        whole[hit.chunk.document_id].append(Span(hit.chunk.start_char, hit.chunk.end_char))
    texts = [_folded(hit.chunk.text) for hit in hits]
    answers = [_folded(answer) for answer in row.get("answers") or ()]
    return Case(
        query=row["text"],
        hits=hits,
        answers=tuple(answer for answer in answers if answer and any(answer in text for text in texts)),
        spans=tuple((document, span) for document, span in gold if _holds(whole[document], span, hits)),
    )


def _holds(passages: Sequence[Span], gold: Span, hits: Sequence[Hit]) -> bool:
    """Whether every character of `gold` but white space, as far as the hits have it, is in `passages`."""
    blank = {hit.chunk.start_char + at for hit in hits for at, char in enumerate(hit.chunk.text) if char.isspace()}
    return all(
        at in blank or any(span.start_char <= at < span.end_char for span in passages)
        for at in range(gold.start_char, gold.end_char)
    )


def _folded(text: str) -> str:
    return " ".join(word for word in re.sub(r"[^\w\s]", "", text.casefold()).split() if word not in ("a", "an", "the"))


def _scaled(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    scaled: npt.NDArray[np.float32] = (scores - scores.min()) / (scores.max() - scores.min() + 1e-9)
    return scaled


if __name__ == "__main__":
    main()
