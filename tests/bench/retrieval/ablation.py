"""Every part of retrieval and compression switched off on its own, per question set, as JSON.

    python -m tests.bench.retrieval.ablation FOLDER… --keep DIR [--questions 80]

FOLDER is a question set, DIR the data dir of `footnote eval --keep`. Rankings are measured by nDCG@10 of
documents, contexts by the gold spans, answers and documents kept of those among the eight best hits; of
"copies" are contexts of the four best, each uploaded twice. `change` is the variant less the first one,
paired by question, with its bootstrap interval; `acts` is the share of questions whose context differs.
The order of the sources loses no sentence: only answers could tell what it is worth, so it is not here.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from app.db.chunks import ChunkRepository
from app.evaluation.dataset import read_question_set, sample
from app.evaluation.intervals import estimate
from app.evaluation.retrieval_metrics import context_scores, finds_span, locate, ranked_documents, ranking_scores
from app.evaluation.scratch import PRINCIPAL, Ingested, ingest, lead, scratch_application
from app.evaluation.types import GoldSpan, QuestionSet, SetQuestion
from app.server.state import State
from app.settings import load_settings
from retrieval.compress import compress
from retrieval.fusion import convex_combination
from retrieval.types import Chunk, Hit, Scope, Scores
from tests.bench.retrieval.contexts import PARTS, whole_hits
from tests.bench.retrieval.headings import Headings, Ranking

CANDIDATES, DEPTH, TOP_K, SHARES = 100, 50, 8, (50, 25)

Values: TypeAlias = dict[str, dict[str, dict[str, float]]]  # by measure, variant and question


@dataclass(frozen=True, slots=True)
class Corpus:
    """An ingested set's chunks by key."""

    chunks: Mapping[int, Chunk]

    def hits(self, ranking: Ranking, k: int) -> tuple[Hit, ...]:
        """The best `k` of a ranking."""
        return tuple(Hit(self.chunks[key], Scores(fused=score)) for key, score in ranking[:k])


def measure(state: State, question_set: QuestionSet, *, questions: int, seed: int) -> dict[str, Any]:
    """One set: estimates by measure and variant, and differences from the first variant."""
    assert state.serving.models is not None, "the application has models"
    ingested = ingest(state, question_set, on_progress=lambda done, total: None)
    store = ChunkRepository(state.database)
    scope = Scope(tenant_id=PRINCIPAL.tenant_id, collection_ids=(ingested.collection_id,))
    keys = store.keys_in(scope).keys.tolist()
    corpus = Corpus(store.chunks(keys, scope=scope))
    asked = sample(
        question_set,
        limit=questions,
        seed=seed,
        wanted=lambda question: not question.unanswerable and bool(question_set.relevant(question.id)),
    )
    rankings: dict[str, dict[str, dict[str, list[str]]]] = {"fusion": {}, "headings": {}}
    values: Values = {}
    with tempfile.TemporaryDirectory() as folder:
        headings = Headings(corpus.chunks, state.serving.models.embedder, Path(folder))
        for question in asked:
            vector = state.serving.models.embedder.embed_query(question.text)
            dense = state.serving.models.index.search_vector(vector, scope=scope, k=CANDIDATES)
            words = state.serving.models.lexical.search_text(question.text, scope=scope, k=CANDIDATES)
            fused = _fusions(dense, words)
            spans = _spans(state, question_set, ingested, question)
            for part, variants in (
                ("fusion", fused),
                ("headings", headings.rankings(question.text, vector, dense, k=CANDIDATES)),
            ):
                for variant, ranking in variants.items():
                    found = ranked_documents(corpus.hits(ranking, DEPTH))[:20]
                    rankings[part].setdefault(variant, {})[question.id] = found
                    if spans:
                        value = finds_span(corpus.hits(ranking, TOP_K), spans)
                        values.setdefault(f"{part}: gold span in the {TOP_K} best", {}).setdefault(variant, {})[
                            question.id
                        ] = value
            hits = corpus.hits(fused["scores"], TOP_K)
            _measure_contexts(values, question, hits, count=state.serving.models.tokenizer.count, spans=spans,
                              relevant=question_set.relevant(question.id))  # fmt: skip
        headings.close()
    for part, by_variant in rankings.items():
        values[f"{part}: nDCG@10"] = {
            variant: ranking_scores(question_set.judgments, found)["ndcg@10"] for variant, found in by_variant.items()
        }
    return {
        "set": question_set.name,
        "questions": len(asked),
        "chunks": len(corpus.chunks),
        "chunks under a heading": round(
            sum(bool(chunk.heading_path) for chunk in corpus.chunks.values()) / len(corpus.chunks), 3
        ),
        "measures": {measure: _compared(variants, seed=seed) for measure, variants in sorted(values.items())},
    }


def _fusions(dense: Ranking, words: Ranking) -> dict[str, Ranking]:
    ranks = _by_ranks([key for key, _ in dense], [key for key, _ in words])
    return {
        "scores": convex_combination(dense, words),
        "ranks (RRF)": ranks,
        "dense alone": dense,
        "words alone": words,
    }


def _by_ranks(*rankings: Sequence[int]) -> Ranking:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, SIGIR; k = 60 is theirs)."""
    shares: dict[int, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            shares[key] = shares.get(key, 0.0) + 1.0 / (60 + rank)
    return sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))


def _spans(state: State, question_set: QuestionSet, ingested: Ingested, question: SetQuestion) -> tuple[GoldSpan, ...]:
    """The question's gold spans in the canonical texts."""
    found = []
    for span in question_set.spans.get(question.id, ()):
        ours = ingested.document_ids.get(span.document_id)
        text = state.corpus.contents.text(ours, tenant_id=PRINCIPAL.tenant_id) if ours is not None else ""
        found.append(locate(span, text, lead=len(lead(question_set.documents[span.document_id]))))
    return tuple(span for span in found if span is not None)


def _measure_contexts(
    values: Values,
    question: SetQuestion,
    hits: tuple[Hit, ...],
    *,
    count: Callable[[str], int],
    spans: Sequence[GoldSpan],
    relevant: frozenset[str],
) -> None:
    """What each variant keeps at each share of the hits' own tokens."""
    counted: dict[str, int] = {}

    def counting(text: str) -> int:
        if text not in counted:
            counted[text] = count(text)
        return counted[text]

    retrieved = sum(counting(hit.chunk.text) for hit in hits)
    # The same hits with the better half uploaded twice: what copies in a library do.
    copies = tuple(
        replace(hit, chunk=replace(hit.chunk, id=f"{hit.chunk.id}/copy", document_id=f"{hit.chunk.document_id}/copy"))
        for hit in hits
    )
    doubled = tuple(one for pair in zip(hits[: TOP_K // 2], copies, strict=False) for one in pair)
    for share in SHARES:
        for shown, found in (("context", hits), ("context of copies", doubled)):
            budget = (retrieved if found is hits else sum(counting(hit.chunk.text) for hit in found)) * share // 100
            default = compress(found, query=question.text, budget=budget, count_tokens=counting)
            contexts = {"all parts": default}
            for name, part in PARTS.items():
                if found is hits or name == "copies kept":
                    contexts[name] = part(found, query=question.text, budget=budget, count_tokens=counting)
            again = whole_hits(found, query=question.text, budget=budget, count_tokens=counting)
            assert again.sources == default.sources, "the parts put together are the product"
            for variant, context in contexts.items():
                assert context.tokens <= budget, "no part may overspend"
                scores = context_scores(found, context, answers=question.answers, spans=spans, relevant=relevant)
                scores["acts"] = float(
                    [source.body for source in context.sources] != [source.body for source in default.sources]
                )
                for name in scores.keys() & {"spans", "answers", "documents", "acts"}:
                    measure = values.setdefault(f"{shown} at {share} %: {name}", {})
                    measure.setdefault(variant, {})[question.id] = scores[name]


def _compared(variants: Mapping[str, Mapping[str, float]], *, seed: int) -> dict[str, dict[str, float]]:
    first = next(iter(variants.values()))
    table = {}
    for variant, scores in variants.items():
        off = estimate([scores[question] - first[question] for question in first], seed=seed)
        table[variant] = {
            "n": len(scores),
            "mean": round(estimate(list(scores.values()), seed=seed).value, 3),
            "change": round(off.value, 3),
            "low": round(off.low, 3),
            "high": round(off.high, 3),
        }
    return table


def main() -> None:
    """Print one JSON object a set as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", type=Path, required=True, metavar="DIR")
    parser.add_argument("--questions", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with scratch_application(load_settings(), data_dir=asked.keep) as state:
        for folder in asked.folders:
            measured = measure(state, read_question_set(folder), questions=asked.questions, seed=asked.seed)
            print(json.dumps(measured), flush=True)


if __name__ == "__main__":
    main()
