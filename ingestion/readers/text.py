"""Plain text: the canonical text is the text itself, a block is what blank lines separate."""

from pathlib import Path

from ingestion.builder import Span, TextBuilder
from ingestion.encoding import decode
from ingestion.normalise import normalise
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType


def read_text(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read text in whatever encoding.

    Raises:
        IngestionError: As `ports.Extractor` says.
    """
    text = normalise(decode(path.read_bytes()))
    builder = TextBuilder(limits)
    builder.append_verbatim(text, paragraph_spans(text))
    return builder.build(MediaType.TEXT)


def paragraph_spans(text: str) -> list[Span]:
    """The runs of non-blank lines in `text`, without the white space around them."""
    spans: list[Span] = []
    start: int | None = None
    end = at = 0
    for line in text.split("\n"):
        content = line.strip()
        if content:
            first = at + line.index(content)
            start, end = (first if start is None else start), first + len(content)
        elif start is not None:
            spans.append(Span(BlockKind.PARAGRAPH, start, end))
            start = None
        at += len(line) + 1
    if start is not None:
        spans.append(Span(BlockKind.PARAGRAPH, start, end))
    return spans
