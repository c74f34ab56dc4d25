"""What compression keeps of the gold evidence that was retrieved."""

from collections.abc import Collection, Sequence

from app.evaluation.evidence import holds
from app.evaluation.retrieval_metrics import passages_of
from app.evaluation.squad import contains_any, token_recall
from app.evaluation.types import GoldSpan
from retrieval.types import Context, Hit, Span


def context_scores(
    hits: Sequence[Hit],
    context: Context,
    *,
    answers: Sequence[str],
    spans: Sequence[GoldSpan],
    relevant: Collection[str],
) -> dict[str, float]:
    """Shares in [0, 1] of what `hits` held that `context` still holds, and the context's tokens.

    What the hits did not hold cannot be lost: such a share is left out. `spans` counts gold spans
    with every character kept, `answers` whether any gold answer still stands in one source, `words`
    compares the best token recall of a gold answer (for answers nobody quotes literally),
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
