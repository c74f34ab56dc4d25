"""Reads plain text and source code: the canonical text is the file's text; blank lines separate blocks."""

import re
from collections.abc import Sequence
from pathlib import Path

from ingestion.builder import PlacedBlock, TextBuilder
from ingestion.encoding import decode
from ingestion.normalise import normalise
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType


def read_text(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read plain text in any encoding.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    return extraction_of([decode(path.read_bytes())], limits)


def extraction_of(texts: Sequence[str], limits: ExtractionLimits) -> Extraction:
    """The extraction of plain texts, one below the other with a blank line between; a blank one is left out.

    Raises:
        IngestionError: They have no text, or too much.
    """
    builder = TextBuilder(limits)
    for text in map(normalise, texts):
        if text.strip() or len(texts) == 1:
            builder.append_verbatim(text, paragraph_spans(text))
    return builder.build(MediaType.TEXT)


def paragraph_spans(text: str) -> list[PlacedBlock]:
    """The runs of non-blank lines in `text`, without the white space around them."""
    spans: list[PlacedBlock] = []
    start: int | None = None
    end = at = 0
    for line in text.split("\n"):
        content = line.strip()
        if content:
            first = at + line.index(content)
            start, end = (first if start is None else start), first + len(content)
        elif start is not None:
            spans.append(PlacedBlock(BlockKind.PARAGRAPH, start, end))
            start = None
        at += len(line) + 1
    if start is not None:
        spans.append(PlacedBlock(BlockKind.PARAGRAPH, start, end))
    return spans


# A line at the left margin that opens something, in the languages people write.
_DEFINITION = re.compile(
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|final|sealed|async|unsafe|pub(?:\(\w+\))?)"
    r"[ \t]+){0,4}(?:def|class|function|func|fn|fun|sub|interface|trait|impl|struct|enum|union|module|namespace"
    r"|object|record|type|procedure|create|begin)\b",
    re.IGNORECASE,
)
_GOES_BEFORE = re.compile(
    r"@|#|//|/?\*|--|;|\[|template\b"
)  # a comment, decorator or attribute belongs to the code after it
_CLOSES = re.compile(r"[)\]}>]|(?:end|else|elif|elsif|except|catch|finally|fi|done|esac)\b|</")


def read_code(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read source code, indentation and all.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    text = normalise(decode(path.read_bytes()))
    builder = TextBuilder(limits)
    builder.append_verbatim(text, code_spans(text))
    return builder.build(MediaType.CODE)


def code_spans(text: str) -> list[PlacedBlock]:
    """Blocks of `text`: each begins at the left margin, after a blank line or with a definition."""
    spans: list[PlacedBlock] = []
    start: int | None = None
    end = at = 0
    previous = ""
    for line in text.split("\n"):
        content = line.rstrip()
        if content:
            if start is not None and _begins_block(content, previous):
                spans.append(PlacedBlock(BlockKind.CODE, start, end))
                start = None
            start = at if start is None else start
            end = at + len(content)
        previous = content
        at += len(line) + 1
    if start is not None:
        spans.append(PlacedBlock(BlockKind.CODE, start, end))
    return spans


def _begins_block(line: str, previous: str) -> bool:
    if line[0].isspace() or _CLOSES.match(line):
        return False
    return not previous or (_DEFINITION.match(line) is not None and not _GOES_BEFORE.match(previous))
