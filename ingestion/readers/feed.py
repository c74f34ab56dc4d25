"""Reads news feeds (RSS 0.9 to 2.0, Atom): each entry is a section with its title, author, date and text."""

from collections.abc import Iterator, Mapping
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import feedparser
from lxml import etree  # type: ignore[import-untyped]

from ingestion.builder import TextBuilder, one_line
from ingestion.encoding import decode
from ingestion.normalise import normalise
from ingestion.readers.html import append_page
from ingestion.readers.text import read_code
from ingestion.types import Extraction, ExtractionLimits, MediaType

# The text is decoded by then, whatever the XML declaration says (RFC 7303 §3: the header wins).
_DECODED = {"content-type": "application/xml; charset=utf-8"}
_LEVELS = 6  # of HTML's headings
_ABOVE = 2  # an entry's own headings stand below the feed's title and the entry's


def read_feed(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a feed; a file that only begins like one is read as the source text it is.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    text = normalise(decode(path.read_bytes()))
    # A stream, since a string could be taken for an address to fetch.
    feed = feedparser.parse(BytesIO(text.encode()), response_headers=_DECODED, resolve_relative_uris=False)
    if not feed.entries:
        return read_code(path, limits)
    title = _plain(feed.feed.get("title", ""))
    builder = TextBuilder(limits)
    append_page("\n".join(_page(title, feed.entries)), builder)
    return builder.build(MediaType.FEED, title=title or None)


def _page(title: str, entries: list[Mapping[str, Any]]) -> Iterator[str]:
    """The feed as an HTML page."""
    yield f"<html><body><h1>{escape(title)}</h1>"
    for entry in entries:
        yield f"<h2>{escape(_plain(entry.get('title', '')))}</h2>"
        said = (entry.get("author", ""), entry.get("published") or entry.get("updated") or "")
        yield f"<p>{escape(', '.join(line for line in map(_plain, said) if line))}</p>"
        # The full text where there is one; else the summary, which repeats its beginning.
        for part in entry.get("content") or [entry.get("summary_detail", {})]:
            value = part.get("value", "")
            yield f"<p>{escape(value)}</p>" if part.get("type") == "text/plain" else _closed(value)
    yield "</body></html>"


def _closed(markup: str) -> str:
    """An entry's markup with every element closed, so that none of it swallows the next entry."""
    if not markup.strip():
        return ""
    root = etree.fromstring(f"<body>{markup}</body>", etree.HTMLParser(huge_tree=True, remove_comments=True))
    for heading in [] if root is None else root.iter(*(f"h{level}" for level in range(1, _LEVELS + 1))):
        heading.tag = f"h{min(_LEVELS, int(heading.tag[1:]) + _ABOVE)}"
    body = None if root is None else root.find("body")
    if body is None:
        return ""
    body.tag = "div"
    closed: str = etree.tostring(body, encoding="unicode", method="html")
    return closed


def _plain(markup: str) -> str:
    """A title's or a name's text without its markup, in one line."""
    if not {"<", "&"} & set(markup):
        return one_line(markup)
    root = etree.fromstring(f"<body>{markup}</body>", etree.HTMLParser(remove_comments=True))
    return one_line("" if root is None else "".join(root.itertext()))
