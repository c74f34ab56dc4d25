"""`python -m tests.bench.retrieval.reader_rerank SETS OUT`: does the span reader's margin improve the ranking of hits?

The first twenty hits of each question are read. A hit's value is then its place in the fused ranking and, with a
weight, how much likelier the reader's best words are than no answer. The weight is fitted on questions about documents
that the reader never trained on, and measured on sets that fitted nothing. OUT keeps what was read.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log1p
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import Progress

from app.answering.quoting.candidates import candidates_of, passages_of
from app.evaluation.answer_measurement import asked
from app.evaluation.dataset import read_question_set, sample
from app.evaluation.retrieval_metrics import ranking_scores
from app.evaluation.scratch import ingest, scratch_application
from app.evaluation.types import Options, QuestionSet
from app.models.loading import load_reader
from app.server.state import State
from app.settings import load_settings
from app.tuning.answer_score.cases import USES, part_of
from app.tuning.evidence_reader.mixture import documents_of, folder_of
from retrieval.ports import SpanReader
from retrieval.types import Hit, SearchMode, Source, Span

FITTING = ("squad-train-44", "squadshift-new-wiki", "sleepqa", "selqa")
MEASURING = (
    "anthropic-docs",
    "musique-train-100",
    "cranfield",
    "squad2-dev",
    "nq-gold",
    "hotpotqa-train-100",
    "scifact-train",
)
READ = 20
"""Hits that are read; those behind them keep their places."""
_DEPTH, _TOP = 50, 10
_MOST_MARGIN = 12.0
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True, slots=True)
class Read:
    """A question's hits in their order: the document of each, the reader's margin for the first ones, and judgments."""

    dataset: str
    question_id: str
    documents: tuple[str, ...]
    margins: tuple[float, ...]
    judgments: Mapping[str, int]


def read_set(state: State, reader: SpanReader, found: QuestionSet, *, limit: int, name: str) -> Iterator[Read]:
    """Asks the judged questions of a set, at most `limit`, of its own collection, and reads their first hits."""
    assert state.serving.models is not None, "a scratch application has models"
    ingested = ingest(state, found, on_progress=lambda _done, _total: None)
    own = {ours: theirs for theirs, ours in ingested.document_ids.items()}
    judged = sample(
        found, limit=limit, seed=0, wanted=lambda one: not one.unanswerable and bool(found.relevant(one.id))
    )
    for question in judged:
        wanted = asked(question, Options(), collection_id=ingested.collection_id, mode=SearchMode.HYBRID, top_k=_DEPTH)
        hits = state.serving.models.answerer.search(wanted).hits
        margins = margins_of(reader, question.text, hits[:READ])
        documents = tuple(own[hit.chunk.document_id] for hit in hits)
        yield Read(name, question.id, documents, margins, dict(found.judgments[question.id]))


def margins_of(reader: SpanReader, question: str, hits: Sequence[Hit]) -> tuple[float, ...]:
    """The best margin in each hit, read as when answering: below the document's title and its headings."""
    sources = [
        Source(
            number=place,
            hit=hit,
            spans=(Span(hit.chunk.start_char, hit.chunk.end_char),),
            header="",
            body=hit.chunk.text,
            tokens=0,
            compressed=False,
        )
        for place, hit in enumerate(hits, start=1)
    ]
    best = {source.number: -_MOST_MARGIN for source in sources}
    candidates = candidates_of(sources)
    passages = passages_of(candidates)
    marked = reader.mark(question, [passage.text for passage in passages], [passage.pieces for passage in passages])
    for passage, pointers in zip(passages, marked, strict=True):
        number = candidates[passage.candidates[0]].source.number
        for pointer in pointers:
            if pointer is not None:
                best[number] = max(best[number], min(pointer.margin, _MOST_MARGIN))
    return tuple(best.values())


def ranking(read: Read, *, weight: float) -> list[str]:
    """The documents in their new order, each once."""
    values = [-log1p(place) + weight * (margin / _MOST_MARGIN) for place, margin in enumerate(read.margins)]
    order = sorted(range(len(values)), key=lambda place: -values[place])
    documents = [read.documents[place] for place in order] + list(read.documents[len(values) :])
    return list(dict.fromkeys(documents))[:_TOP]


def ndcg(reads: Sequence[Read], *, weight: float) -> float:
    """The mean nDCG@10."""
    rankings = {read.question_id: ranking(read, weight=weight) for read in reads}
    judgments = {read.question_id: read.judgments for read in reads}
    return fmean(ranking_scores(judgments, rankings)["ndcg@10"].values())


def fitted(reads: Mapping[str, Sequence[Read]]) -> float:
    """The weight with the largest mean of the sets' nDCG@10."""
    return max(WEIGHTS, key=lambda weight: fmean(ndcg(found, weight=weight) for found in reads.values()))


def table(reads: Mapping[str, Sequence[Read]]) -> str:
    """nDCG@10 of each set at each weight, as Markdown."""
    lines = [
        "| set | n | " + " | ".join(f"{weight:g}" for weight in WEIGHTS) + " |",
        "|---|---|" + "---|" * len(WEIGHTS),
    ]
    means = [(name, len(found), [ndcg(found, weight=weight) for weight in WEIGHTS]) for name, found in reads.items()]
    means.append(
        (
            "mean",
            sum(row[1] for row in means),
            [fmean(column) for column in zip(*(row[2] for row in means), strict=True)],
        )
    )
    lines += [
        f"| {name} | {count} | " + " | ".join(f"{value:.3f}" for value in row) + " |" for name, count, row in means
    ]
    return "\n".join(lines)


def main() -> None:
    """Read, fit, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.retrieval.reader_rerank", description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=int, default=100, help="of each set")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept = chosen.out / "read.jsonl"
    if not kept.exists():
        _read_all(chosen.sets, chosen.out, kept, questions=chosen.questions)
    rows = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    reads = [Read(**{**row, "documents": tuple(row["documents"]), "margins": tuple(row["margins"])}) for row in rows]
    by_set = {
        name: [read for read in reads if read.dataset == name] for name in dict.fromkeys(r.dataset for r in reads)
    }
    fitting = {name: found for name, found in by_set.items() if name.startswith("fit/")}
    measuring = {name: found for name, found in by_set.items() if not name.startswith("fit/")}
    weight = fitted(fitting)
    Console().print(
        f"{table(fitting)}\n\nfitted weight: {weight:g}\n\n{table(measuring)}", markup=False, highlight=False
    )


def _read_all(sets: Path, out: Path, kept: Path, *, questions: int) -> None:
    settings = load_settings(generator="extractive")
    reader = load_reader(settings)
    assert reader is not None, "the default embedder has a reader"
    partial = kept.with_suffix(".partial")
    with (
        scratch_application(settings, data_dir=out / "data") as state,
        partial.open("w", encoding="utf-8") as lines,
        Progress() as progress,
    ):
        task = progress.add_task("reading", total=len(FITTING) + len(MEASURING))
        for name in FITTING:
            folder = folder_of(sets, name)
            whole = read_question_set(folder)
            part = part_of(whole, USES[name], document_of=documents_of(folder, whole))
            for read in read_set(state, reader, part, limit=questions, name=f"fit/{name}"):
                lines.write(json.dumps(asdict(read)) + "\n")
            progress.advance(task)
        for name in MEASURING:
            for read in read_set(state, reader, read_question_set(sets / name), limit=questions, name=name):
                lines.write(json.dumps(asdict(read)) + "\n")
            progress.advance(task)
    partial.replace(kept)


if __name__ == "__main__":
    main()
