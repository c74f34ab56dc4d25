"""ingestion.readers.markdown: the canonical text is the source, blocks point into it."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.normalise import normalise
from ingestion.types import BlockKind, MediaType
from tests.ingestion.readers.reading import blocks, paths, read

SOURCE = """\
Intro *text*.

# The **Title** of `it`

- one
- two
  - nested
1. first

| a | b |
|---|---|
| 1 | 2 |

Setext & sub
------------

```python
# no heading
x = 1
```

> quoted

    indented code
"""


def test_every_block_is_found_where_it_stands(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.md", SOURCE)

    assert extraction.text == SOURCE
    assert extraction.media_type is MediaType.MARKDOWN
    assert blocks(extraction) == [
        (BlockKind.PARAGRAPH, "Intro *text*."),
        (BlockKind.HEADING, "# The **Title** of `it`"),
        (BlockKind.LIST_ITEM, "- one"),
        (BlockKind.LIST_ITEM, "- two"),
        (BlockKind.LIST_ITEM, "- nested"),
        (BlockKind.LIST_ITEM, "1. first"),
        (BlockKind.TABLE_ROW, "| a | b |"),
        (BlockKind.TABLE_ROW, "| 1 | 2 |"),
        (BlockKind.HEADING, "Setext & sub\n------------"),
        (BlockKind.CODE, "```python\n# no heading\nx = 1\n```"),
        (BlockKind.PARAGRAPH, "> quoted"),
        (BlockKind.CODE, "indented code"),
    ]


def test_headings_are_named_without_their_markup(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.md", SOURCE)

    assert extraction.title == "The Title of it"
    assert paths(extraction)[0] == ()
    assert paths(extraction)[2] == ("The Title of it",)
    assert paths(extraction)[-1] == ("The Title of it", "Setext & sub")


def test_front_matter_gives_the_title_and_is_no_heading(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.md", '---\ntitle: "From above"\ntags: [a]\n---\n\n# Heading\n\ntext\n')

    assert extraction.title == "From above"
    assert blocks(extraction) == [
        (BlockKind.PARAGRAPH, '---\ntitle: "From above"\ntags: [a]\n---'),
        (BlockKind.HEADING, "# Heading"),
        (BlockKind.PARAGRAPH, "text"),
    ]


def test_a_rule_at_the_top_is_no_front_matter(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.md", "---\n\ntext\n")

    assert [text for _, text in blocks(extraction)] == ["text"]


PIECES = ["# a\n", "- b\n", "  - c\n", "> d\n", "text\n", "\n", "```\n", "---\n", "| a | b |\n", "|---|---|\n",
          "    e\n", "<div>\n", "\t", "🦆 ", "a\n===\n", "1. f\n", "[x]: y\n"]  # fmt: skip


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # the file is written anew each time
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=20))
def test_any_markdown_stays_itself_with_blocks_in_order(tmp_path: Path, pieces: list[str]) -> None:
    source = "text\n\n" + "".join(pieces)

    extraction = read(tmp_path, "a.md", source)

    assert extraction.text == normalise(source)
    end = 0
    for block in extraction.blocks:
        assert end <= block.start_char < block.end_char
        end = block.end_char
