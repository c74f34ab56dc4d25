"""Scores of rankings, by ir-measures (MacAvaney et al. 2022, arXiv:2111.13466)."""

from collections.abc import Iterable, Mapping, Sequence

from app.evaluation.evidence import holds
from app.evaluation.types import GoldSpan
from retrieval.types import Hit, Span


def ranked_documents(hits: Iterable[Hit]) -> list[str]:
    """The documents of the hits by their external ids, each where its best chunk stands."""
    return list(dict.fromkeys(hit.chunk.external_id for hit in hits if hit.chunk.external_id is not None))


def ranking_scores(
    judgments: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """nDCG@10, recall@5/10/20 and MRR of every question in `rankings`, by measure and question.

    Args:
        judgments: Grades by question and document, relevant from 1; nDCG's gain is the grade.
        rankings: Document ids best first. Every question has a judgment; an empty ranking scores 0.
    """
    import ir_measures
    from ir_measures import RR, R, nDCG

    wanted = {"ndcg@10": nDCG @ 10, "recall@5": R @ 5, "recall@10": R @ 10, "recall@20": R @ 20, "mrr": RR}
    names = {str(measure): name for name, measure in wanted.items()}
    scores = {name: dict.fromkeys(rankings, 0.0) for name in wanted}
    qrels = [
        ir_measures.Qrel(question, document, grade)
        for question in rankings
        for document, grade in judgments[question].items()
    ]
    # The place is the score: trec_eval would break ties by document id.
    run = [
        ir_measures.ScoredDoc(question, document, -float(place))
        for question, documents in rankings.items()
        for place, document in enumerate(documents)
    ]
    if run:
        for metric in ir_measures.iter_calc(list(wanted.values()), qrels, run):
            scores[names[str(metric.measure)]][metric.query_id] = float(metric.value)
    return scores


def finds_span(hits: Sequence[Hit], spans: Sequence[GoldSpan]) -> float:
    """1 when one chunk among the hits holds a whole gold span, else 0."""
    return float(any(holds(passages_of([hit]), span) for hit in hits for span in spans))


def passages_of(hits: Iterable[Hit]) -> dict[str, list[Span]]:
    """Where the hits stand in their documents' canonical texts, by external id."""
    passages: dict[str, list[Span]] = {}
    for hit in hits:
        span = Span(hit.chunk.start_char, hit.chunk.end_char)
        passages.setdefault(hit.chunk.external_id or "", []).append(span)
    return passages
