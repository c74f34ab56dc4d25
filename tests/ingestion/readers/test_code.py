"""ingestion.readers.text: source as it stands, in blocks one can cite."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ingestion.readers.text import code_spans
from ingestion.types import BlockKind, MediaType
from tests.ingestion.readers.reading import blocks, read

PYTHON = '''"""A module."""

import os


@cache
def first(x):
    if x:

        return 1
    return 2
# about the second
class Second:
\tpass
def third(): ...
'''


def test_a_block_is_a_top_level_definition_with_its_indentation(tmp_path: Path) -> None:
    extraction = read(tmp_path, "a.py", PYTHON)

    assert extraction.text == PYTHON
    assert blocks(extraction) == [
        (BlockKind.CODE, '"""A module."""'),
        (BlockKind.CODE, "import os"),
        (
            BlockKind.CODE,
            "@cache\ndef first(x):\n    if x:\n\n        return 1\n    return 2\n"
            "# about the second\nclass Second:\n\tpass",
        ),
        (BlockKind.CODE, "def third(): ..."),
    ]
    assert extraction.media_type is MediaType.CODE


def test_a_closing_brace_stays_with_what_it_closes(tmp_path: Path) -> None:
    source = "func main() {\n\n    run()\n\n}\n\nfunc run() {\n}\n"

    assert [text for _, text in blocks(read(tmp_path, "a.go", source))] == [
        "func main() {\n\n    run()\n\n}",
        "func run() {\n}",
    ]


def test_data_is_text_as_it_stands(tmp_path: Path) -> None:
    for name, source in {
        "a.json": '{\n  "a": [1,\n    2]\n}',
        "a.xml": "<?xml version='1.0'?>\n<a>\n  <b/>\n</a>",
        "a.yaml": "a:\n  - 1\n  - 2",
    }.items():
        extraction = read(tmp_path, name, source)

        assert extraction.text == source
        assert blocks(extraction) == [(BlockKind.CODE, source)]


def test_a_script_without_an_extension_is_known_by_its_first_line(tmp_path: Path) -> None:
    assert read(tmp_path, "run", "#!/bin/sh\necho hi\n").media_type is MediaType.CODE


@given(st.text(alphabet="ab \t\n}@#def", max_size=200))
def test_blocks_cover_every_character_that_is_not_blank_once_and_in_order(text: str) -> None:
    spans = code_spans(text)

    end = 0
    for span in spans:
        assert not text[end : span.start].strip()
        assert text[span.start : span.end].strip()
        end = span.end
    assert not text[end:].strip()
