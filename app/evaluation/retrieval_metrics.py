"""Scores of rankings, by ir-measures (MacAvaney et al. 2022, arXiv:2111.13466)."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from app.evaluation.squad import contains_any, token_recall
from app.evaluation.types import GoldSpan
from ingestion.normalise import normalise
from retrieval.types import Context, Hit, Span


def ranked_documents(hits: Iterable[Hit]) -> list[str]:
    """Ranks documents, by external id, at the position of their best chunk."""
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
    """1 when one chunk of the hits holds a whole gold span, else 0."""
    return float(any(holds(passages_of([hit]), span) for hit in hits for span in spans))


def passages_of(hits: Iterable[Hit]) -> dict[str, list[Span]]:
    """The character ranges of the hits in their documents' canonical texts, by external id."""
    passages: dict[str, list[Span]] = {}
    for hit in hits:
        span = Span(hit.chunk.start_char, hit.chunk.end_char)
        passages.setdefault(hit.chunk.external_id or "", []).append(span)
    return passages


def locate(span: GoldSpan, text: str, *, lead: int) -> GoldSpan | None:
    """Locates a gold span in a document's canonical text; None if its words are not there.

    `lead` is how many characters the document has before its corpus text. Normalising may have
    moved the words a little: of several places, the nearest to where they are expected.
    """
    wanted = normalise(span.text).strip()
    expected = lead + span.start
    if not wanted:
        return None
    found: int | None = None
    at = text.find(wanted)
    while at >= 0 and (found is None or abs(at - expected) < abs(found - expected)):
        found = at
        at = text.find(wanted, at + 1)
    return GoldSpan(span.document_id, found, found + len(wanted), wanted) if found is not None else None


def holds(passages: Mapping[str, Iterable[Span]], gold: GoldSpan) -> bool:
    """Whether every character of the gold span but white space lies in a passage of its document.

    Args:
        passages: Spans of the canonical text, by the document's id in the question set.
        gold: Located in the same text.
    """
    at = gold.start
    for span in sorted(passages.get(gold.document_id, ()), key=lambda span: span.start_char):
        if span.end_char <= at:
            continue
        if gold.text[at - gold.start : max(span.start_char, at) - gold.start].strip():
            return False
        at = max(at, span.end_char)
        if at >= gold.end:
            return True
    return not gold.text[at - gold.start :].strip()


def context_scores(
    hits: Sequence[Hit],
    context: Context,
    *,
    answers: Sequence[str],
    spans: Sequence[GoldSpan],
    relevant: Collection[str],
) -> dict[str, float]:
    """The shares, in [0, 1], of the evidence in `hits` that `context` keeps, and the context's tokens.

    A share is left out if the hits did not hold it, since it cannot be lost. `spans` counts gold spans
    with every character kept, `answers` whether any gold answer still stands in one source, `words`
    compares the best token recall of a gold answer (for answers that are not quoted literally),
    `documents` counts relevant documents.
    """
    scores = {"tokens": float(context.tokens)}
    kept_passages: dict[str, list[Span]] = {}
    for source in context.sources:
        kept_passages.setdefault(source.hit.chunk.external_id or "", []).extend(source.spans)

    retrieved_passages = passages_of(hits)
    found_spans = [span for span in spans if holds(retrieved_passages, span)]
    if found_spans:
        scores["spans"] = sum(holds(kept_passages, span) for span in found_spans) / len(found_spans)

    bodies = [source.body for source in context.sources]
    if any(contains_any(hit.chunk.text, answers) for hit in hits):
        scores["answers"] = float(any(contains_any(body, answers) for body in bodies))

    recalled = token_recall("\n".join(hit.chunk.text for hit in hits), answers)
    if recalled:
        scores["words"] = min(1.0, token_recall("\n".join(bodies), answers) / recalled)

    found = {document for document in retrieved_passages if document in relevant}
    if found:
        scores["documents"] = len(found & kept_passages.keys()) / len(found)
    return scores
