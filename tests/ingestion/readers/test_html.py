"""ingestion.readers.html extracts a page's visible text."""

from pathlib import Path

import pytest

from ingestion.errors import LimitExceeded, NoText
from ingestion.types import BlockKind, MediaType
from tests.ingestion.readers.reading import blocks, paths, read

PAGE = """<!doctype html><html><head><title>Water &amp; lakes</title><style>p {color: red}</style>
<script>alert("no")</script></head><body>
<p>Before any heading.</p>
<h1>Water</h1>
<p>It is <b>bold</b>, <i>really</i> (<a href="https://example.com/x">a link</a>): H<sub>2</sub>O.</p>
<h2>Uses</h2>
<ul><li>drinking</li><li>swimming <em>slowly</em></li></ul>
<ol><li>fill</li><li>drink</li></ol>
<pre>x = 1
y = 2</pre>
<table><tr><th>Lake</th><th>Area</th></tr><tr><td>Bala</td><td>4.8</td></tr></table>
<img src="data:image/png;base64,AAAA"><img src="file:///etc/passwd">
</body></html>"""


def test_a_page_gives_its_text_in_order(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.html", PAGE)

    assert blocks(extraction) == [
        (BlockKind.PARAGRAPH, "Before any heading."),
        (BlockKind.HEADING, "Water"),
        (BlockKind.PARAGRAPH, "It is bold, really (a link): H2O."),
        (BlockKind.HEADING, "Uses"),
        (BlockKind.LIST_ITEM, "drinking"),
        (BlockKind.LIST_ITEM, "swimming slowly"),
        (BlockKind.LIST_ITEM, "fill"),
        (BlockKind.LIST_ITEM, "drink"),
        (BlockKind.CODE, "x = 1\ny = 2"),
        (BlockKind.TABLE_ROW, "Lake | Area"),
        (BlockKind.TABLE_ROW, "Lake: Bala | Area: 4.8"),
    ]
    assert paths(extraction)[2] == ("Water",)
    assert paths(extraction)[-1] == ("Water", "Uses")
    assert extraction.title == "Water & lakes"
    assert extraction.media_type is MediaType.HTML


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [("x-sjis", "cp932"), ("utf-8", "cp932"), ("windows-1251", "utf-8"), ("nonsense", "utf-16"), ("utf-7", "utf-8")],
)
def test_a_page_comes_back_though_it_lies_about_its_encoding(tmp_path: Path, declared: str, encoding: str) -> None:
    sentence = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3

    data = f'<html><meta charset="{declared}"><body><p>{sentence}</p></body></html>'.encode(encoding)

    assert read(tmp_path, "a.html", data).text == sentence


@pytest.mark.parametrize("element", ["div", "b", "ul><li", "table><tr><td"])
def test_a_page_nested_without_end_is_refused(tmp_path: Path, element: str) -> None:
    page = "<html><body>" + f"<{element}>" * 20_000 + "deep"

    with pytest.raises(LimitExceeded, match="nested too deeply"):
        read(tmp_path, "a.html", page)


def test_elements_left_open_are_not_nested(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.html", "<html><body>" + "<p>para<ul><li>one<li>two</ul>" * 300)

    assert blocks(extraction)[-3:] == [
        (BlockKind.PARAGRAPH, "para"),
        (BlockKind.LIST_ITEM, "one"),
        (BlockKind.LIST_ITEM, "two"),
    ]
    assert len(extraction.blocks) == 900


def test_an_attribute_of_megabytes_is_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, "a.html", f'<p title="{"a" * 3_000_000}">text</p>').text == "text"


def test_a_page_without_text_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(NoText):
        read(tmp_path, "a.html", "<html><body><script>x</script></body></html>")
