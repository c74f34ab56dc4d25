"""ingestion.readers.feed: the entries of RSS and Atom as sections, whatever their markup leaves open."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.errors import IngestionError
from ingestion.types import BlockKind, MediaType
from tests.ingestion.readers.reading import blocks, paths, read

RSS = """<?xml version="1.0" encoding="windows-1252"?>
<!-- made by hand --><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>News of the harbour</title><link>https://example.com/</link>
<item><title>Ferry &amp;amp; bridge</title><author>ada@example.com (Ada)</author>
<pubDate>Tue, 19 Nov 2024 13:30:02 +0000</pubDate><description>The ferry …</description>
<content:encoded><![CDATA[<h2>Costs</h2><p>The ferry costs 4,20 €.
<p>The bridge is free.<!-- --><ul><li>daily]]></content:encoded></item>
<item><title>Café</title><description>Open from nine.</description></item>
</channel></rss>
"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Notes</title>
<entry><title type="html">A &lt;b&gt;bold&lt;/b&gt; note</title><updated>2024-11-19T13:30:02Z</updated>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>It has <i>one</i> line.</p></div></content></entry>
<entry><title>Plain</title><content type="text">1 &lt; 2 is true.</content></entry></feed>
"""

RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel><title>Old news</title></channel><item><title>First</title>
<description>It was built in 1999.</description></item>
</rdf:RDF>
"""


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_each_entry_of_rss_is_a_section(tmp_path: Path, encoding: str) -> None:
    extraction = read(tmp_path, "news.xml", RSS.encode(encoding))

    assert extraction.media_type is MediaType.FEED
    assert extraction.title == "News of the harbour"
    assert blocks(extraction) == [
        (BlockKind.HEADING, "News of the harbour"),
        (BlockKind.HEADING, "Ferry & bridge"),
        (BlockKind.PARAGRAPH, "ada@example.com (Ada), Tue, 19 Nov 2024 13:30:02 +0000"),
        (BlockKind.HEADING, "Costs"),
        (BlockKind.PARAGRAPH, "The ferry costs 4,20 €."),
        (BlockKind.PARAGRAPH, "The bridge is free."),
        (BlockKind.LIST_ITEM, "daily"),
        (BlockKind.HEADING, "Café"),
        (BlockKind.PARAGRAPH, "Open from nine."),
    ]
    assert paths(extraction)[4] == ("News of the harbour", "Ferry & bridge", "Costs")
    assert paths(extraction)[8] == ("News of the harbour", "Café")


def test_atom_has_text_in_three_forms(tmp_path: Path) -> None:
    assert blocks(read(tmp_path, "notes.atom", ATOM)) == [
        (BlockKind.HEADING, "Notes"),
        (BlockKind.HEADING, "A bold note"),
        (BlockKind.PARAGRAPH, "2024-11-19T13:30:02Z"),
        (BlockKind.PARAGRAPH, "It has one line."),
        (BlockKind.HEADING, "Plain"),
        (BlockKind.PARAGRAPH, "1 < 2 is true."),
    ]


def test_a_feed_in_rdf_is_read_too(tmp_path: Path) -> None:
    assert (BlockKind.PARAGRAPH, "It was built in 1999.") in blocks(read(tmp_path, "old.rdf", RDF))


@pytest.mark.parametrize(
    "source", ["<rss version='2.0'><channel></channel></rss>", "<rss version='2.0'>nothing", "rss"]
)
def test_a_file_without_entries_is_source_text(tmp_path: Path, source: str) -> None:
    extraction = read(tmp_path, "a.rss", source)

    assert extraction.media_type is MediaType.CODE
    assert extraction.text == source


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(RSS)), st.integers(0, len(RSS)))
def test_a_damaged_feed_ends_in_text_or_in_a_sentence(tmp_path: Path, cut: int, until: int) -> None:
    try:
        text = read(tmp_path, "news.xml", RSS[:cut] + RSS[until:]).text
    except IngestionError as error:
        text = str(error)

    assert text
