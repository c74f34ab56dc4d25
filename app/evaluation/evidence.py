"""Gold spans in canonical text: where they went, and whether passages hold them."""

from collections.abc import Iterable, Mapping

from app.evaluation.types import GoldSpan
from ingestion.normalise import normalise
from retrieval.types import Span


def locate(span: GoldSpan, text: str, *, lead: int) -> GoldSpan | None:
    """The span at its offsets in a document's canonical text, or None if its words are not there.

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
