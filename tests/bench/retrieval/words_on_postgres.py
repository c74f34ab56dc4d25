"""`python -m tests.bench.retrieval.words_on_postgres DATA`: words on PostgreSQL beside SQLite, as a table and JSON.

DATA has question sets. The passages of all are chunks of one tenant, whole, each set a collection; those of the last
set named are also chunks of another tenant. The same questions are put to both databases in turn: in their collection,
for nDCG@10 by words and fused with exact similarity, and in the whole tenant and in the small one, for their time.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.db.chunks import ChunkRepository
from app.db.lexical import rebuild_full_text
from app.db.migration import upgrade
from app.db.session import Database
from app.db.tables import documents as tables
from app.evaluation.dataset import read_question_set, sample
from app.evaluation.retrieval_metrics import ranking_scores
from app.evaluation.types import QuestionSet, SetDocument, SetQuestion
from app.settings import DEFAULT_EMBEDDER, load_settings
from retrieval.encoder import SentenceEncoder
from retrieval.fusion import convex_combination
from retrieval.ports import Embedder, Vectors
from retrieval.types import Scope
from tests.bench.machine import description, median
from tests.postgres import empty_postgres

SETS = ("scifact-train", "squad2-dev", "nq-gold")
LARGE, SMALL = "large", "small"
CANDIDATES, TOP, WARM_UP = 100, 10, 10
console = Console()

_Ranking = list[tuple[int, float]]
_Search = Callable[[str, Scope], _Ranking]


class Library:
    """The passages of all sets with a key each, from 1 on, as rows of both databases."""

    def __init__(self, sets: Sequence[QuestionSet]) -> None:
        copied = next(each for each in reversed(sets) if each.name in SETS)
        self.owned = [(LARGE, each.name, one) for each in sets for one in each.documents.values()]
        self.owned += [(SMALL, f"{copied.name} again", one) for one in copied.documents.values()]

    def keys(self, name: str) -> dict[int, SetDocument]:
        """The passages of a collection by key."""
        return {key: one for key, (_, its, one) in enumerate(self.owned, start=1) if its == name}

    def fill(self, database: Database) -> float:
        """Write the rows of a new database; returns the seconds that its words took."""
        upgrade(database)
        with database.write() as connection:
            connection.execute(sa.insert(tables.tenant), [{"id": name, "created_at": 0} for name in (LARGE, SMALL)])
            connection.execute(sa.insert(tables.collection), [
                {"id": name, "tenant_id": owner, "name": name, "metadata": {}, "created_at": 0}
                for name, owner in {name: owner for owner, name, _ in self.owned}.items()
            ])  # fmt: skip
            numbered = list(enumerate(self.owned, start=1))
            connection.execute(sa.insert(tables.document), [
                {"id": f"d{key}", "tenant_id": owner, "collection_id": name, "version": 1, "live_version": 1,
                 "status": "indexed", "done": 1, "total": 1, "job_id": "", "created_at": 0, "updated_at": 0,
                 "metadata": {}}
                for key, (owner, name, _) in numbered
            ])  # fmt: skip
            connection.execute(sa.insert(tables.document_version), [
                {"document_id": f"d{key}", "version": 1, "filename": "a.txt", "bytes": 1, "sha256": str(key),
                 "page_count": 0, "first_key": key, "chunk_count": 1, "token_count": 1, "generation": None,
                 "embedding_tokens": 1, "created_at": 0, "object": ""}
                for key, _ in numbered
            ])  # fmt: skip
            connection.execute(sa.insert(tables.chunk), [
                {"key": key, "document_id": f"d{key}", "version": 1, "ordinal": 0, "start_char": 0,
                 "end_char": len(one.text), "token_count": 1, "heading_path": [one.title] if one.title else [],
                 "heading": one.title, "text": one.text}
                for key, (_, _, one) in numbered
            ])  # fmt: skip
        began = time.perf_counter()
        rebuild_full_text(database)
        return time.perf_counter() - began


def timed(searches: dict[str, _Search], questions: Sequence[str], scope: Scope) -> dict[str, dict[str, float]]:
    """Milliseconds of each database, asked in turn, after some questions that are not counted."""
    times: dict[str, list[float]] = {name: [] for name in searches}
    for question in [*questions[:WARM_UP], *questions]:
        for name, search in searches.items():
            began = time.perf_counter()
            search(question, scope)
            times[name].append(1e3 * (time.perf_counter() - began))
    return {
        name: {"p50_ms": round(median(each[WARM_UP:]), 1), "p95_ms": round(float(np.quantile(each[WARM_UP:], 0.95)), 1)}
        for name, each in times.items()
    }


class Quality:
    """The rankings of one set's questions, by words and fused."""

    def __init__(self, question_set: QuestionSet, passages: dict[int, SetDocument], embedder: Embedder | None) -> None:
        self._set = question_set
        self._ids = {key: one.id for key, one in passages.items()}
        self._keys = np.array(list(passages))
        self._embedder = embedder
        if embedder is not None:
            self._vectors = embedder.embed_documents([f"{one.title}\n{one.text}" for one in passages.values()])

    def measure(self, searches: dict[str, _Search], questions: Sequence[SetQuestion]) -> dict[str, float]:
        """nDCG@10 by database, of words and of the fused rankings."""
        scope = Scope(LARGE, collection_ids=(self._set.name,))
        rankings: dict[str, dict[str, list[str]]] = {}
        same = 0
        for question in questions:
            found = {name: search(question.text, scope) for name, search in searches.items()}
            same += len({ranking[0][0] for ranking in found.values() if ranking}) == 1
            for name, ranking in found.items():
                rankings.setdefault(f"{name}, words", {})[question.id] = self._named(ranking)
                if self._embedder is not None:
                    dense = self._nearest(self._embedder.embed_query(question.text))
                    fused = self._named(convex_combination(dense, ranking))
                    rankings.setdefault(f"{name}, fused", {})[question.id] = fused
        scores = {name: ranking_scores(self._set.judgments, each)["ndcg@10"] for name, each in rankings.items()}
        means = {name: round(float(np.mean(list(each.values()))), 4) for name, each in scores.items()}
        return {**means, "same first hit": round(same / len(questions), 3)}

    def _nearest(self, question: Vectors) -> _Ranking:
        similar = self._vectors @ question
        best = np.argsort(-similar, kind="stable")[:CANDIDATES]
        return [(int(self._keys[at]), float(similar[at])) for at in best]

    def _named(self, ranking: _Ranking) -> list[str]:
        return [self._ids[key] for key, _ in ranking[:TOP]]


def measured(folder: Path, data: Path, *, questions: int, embedder: Embedder | None) -> dict[str, Any]:
    """Fill both databases, ask, and say what was found and how long it took."""
    sets = [read_question_set(each) for each in sorted(data.iterdir()) if (each / "qrels.tsv").is_file()]
    library = Library(sets)
    report: dict[str, Any] = {"chunks": len(library.owned)}
    with empty_postgres() as url:
        databases = {"sqlite": Database.open(f"sqlite:///{folder / 'bench.db'}"), "postgresql": Database.open(url)}
        searches: dict[str, _Search] = {}
        for name, database in databases.items():
            report[f"{name}: words of all chunks, s"] = round(library.fill(database), 1)
            searches[name] = _search(ChunkRepository(database))
        with databases["postgresql"].session() as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")
            size = connection.exec_driver_sql("SELECT pg_total_relation_size('chunk_words')").scalar_one()
        report["postgresql: words, MB"] = round(size / 1e6, 1)
        for each in sets:
            if each.name not in SETS:
                continue
            judged = {one for one in each.questions if each.relevant(one)}
            asked = sample(each, limit=questions, seed=0, wanted=lambda one: one.id in judged)  # noqa: B023 - called here
            texts = [question.text for question in asked]
            report[each.name] = {
                "questions": len(asked),
                "chunks": len(each.documents),
                "quality": Quality(each, library.keys(each.name), embedder).measure(searches, asked),
                "in its collection": timed(searches, texts, Scope(LARGE, collection_ids=(each.name,))),
                "in the tenant": timed(searches, texts, Scope(LARGE)),
                "in the small tenant": timed(searches, texts, Scope(SMALL)),
            }
            console.print(each.name, report[each.name])
        for database in databases.values():
            database.close()
    return report


def _search(chunks: ChunkRepository) -> _Search:
    return lambda question, scope: chunks.search_text(question, scope=scope, k=CANDIDATES)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a folder with question sets")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--without-embedder", action="store_true", help="words alone")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    embedder = None
    if not options.without_embedder:
        embedder = SentenceEncoder.load(str(load_settings().models_dir / DEFAULT_EMBEDDER), device="cpu")
    machine = description()
    with tempfile.TemporaryDirectory() as folder:
        report = measured(Path(folder), options.data, questions=options.questions, embedder=embedder)
    table = Table("figure", *SETS)
    for part in ("quality", "in its collection", "in the tenant", "in the small tenant"):
        for name in report[SETS[0]][part]:
            table.add_row(f"{part}: {name}", *(str(report[one][part][name]) for one in SETS))
    console.print({name: value for name, value in report.items() if name not in SETS})
    console.print(table)
    if options.out:
        options.out.write_text(json.dumps({"machine": machine} | report, indent=1) + "\n")


if __name__ == "__main__":
    main()
