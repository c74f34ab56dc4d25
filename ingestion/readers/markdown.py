"""Markdown (CommonMark 0.31 and GFM tables): the canonical text is the source itself, so offsets are exact."""

import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingestion.builder import PlacedBlock, TextBuilder
from ingestion.encoding import decode
from ingestion.normalise import normalise
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:[^\n]*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FRONT_MATTER_CHARS = 16_384
_TITLE = re.compile(r"^title[ \t]*:[ \t]*[\"']?([^\n\"']+)", re.MULTILINE)
_KINDS = {
    "paragraph_open": BlockKind.PARAGRAPH,
    "heading_open": BlockKind.HEADING,
    "tr_open": BlockKind.TABLE_ROW,
    "fence": BlockKind.CODE,
    "code_block": BlockKind.CODE,
    "html_block": BlockKind.PARAGRAPH,
}


def read_markdown(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read Markdown source unchanged, front matter included.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    text = normalise(decode(path.read_bytes()))
    front = _FRONT_MATTER.match(text[:_FRONT_MATTER_CHARS])
    title = _TITLE.search(front.group()) if front else None
    builder = TextBuilder(limits)
    builder.append_verbatim(text, _spans(text, front.group() if front else ""))
    return builder.build(MediaType.MARKDOWN, title=title[1] if title else None)


def _spans(text: str, front: str) -> Iterator[PlacedBlock]:
    if front.strip():
        yield PlacedBlock(BlockKind.PARAGRAPH, 0, len(front.rstrip()))
    parser = MarkdownIt("commonmark").enable("table")
    # Block structure alone: inline syntax is worst-case quadratic and only headings need it.
    parser.core.ruler.enableOnly(["normalize", "block"])
    inline = MarkdownIt("commonmark")
    starts = [len(front), *accumulate((len(line) + 1 for line in text[len(front) :].split("\n")), initial=len(front))][
        1:
    ]
    list_depth = 0
    tokens = parser.parse(text[len(front) :])
    for at, token in enumerate(tokens):
        if token.type in {"list_item_open", "list_item_close"}:
            list_depth += token.nesting
        kind = _KINDS.get(token.type)
        if kind is None or token.map is None:
            continue
        start, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
        content = text[start:end].strip()
        if not content:
            continue
        start = text.index(content, start)
        if kind is BlockKind.HEADING:
            yield PlacedBlock(kind, start, start + len(content), int(token.tag[1]), _plain(inline, tokens[at + 1]))
        else:
            in_list = kind is BlockKind.PARAGRAPH and list_depth > 0
            yield PlacedBlock(BlockKind.LIST_ITEM if in_list else kind, start, start + len(content))


def _plain(inline: MarkdownIt, token: Token) -> str:
    """A heading's text without its markup."""
    children = inline.parseInline(token.content[:1000])[0].children or []
    return "".join(" " if child.type in {"softbreak", "hardbreak"} else child.content for child in children)
