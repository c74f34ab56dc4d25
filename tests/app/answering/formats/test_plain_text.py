"""app.answering.formats.plain_text takes Markdown's marks away and nothing else, however the text is cut."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.formats.plain_text import PlainText


def plain(*pieces: str) -> str:
    writer = PlainText()
    return "".join([*(writer.feed(piece) for piece in pieces), writer.finish()])


markdown = st.text(alphabet="ab1 .\n*_~`#>-+=|[]()!\\:", max_size=60) | st.lists(
    st.sampled_from(
        [
            "**bold**",
            "# Head\n",
            "```py\n",
            "```\n",
            "[1]",
            "[a](b)",
            "![i](u)",
            "* x\n",
            "---\n",
            "> ",
            "`c`",
            "x ",
            "\n",
        ]
    ),
    max_size=12,
).map("".join)


@given(text=markdown, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_how_the_text_is_cut_changes_nothing(text: str, cuts: list[int]) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(edges)]

    assert plain(*pieces) == plain(*text) == plain(text)


@given(text=st.text(alphabet=st.characters(exclude_characters="\n\\`*_~![#>+-=|:", exclude_categories=["Cs"])))
def test_text_without_marks_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


@given(text=markdown)
def test_every_letter_shown_stood_in_the_text_in_this_order(text: str) -> None:
    there = iter(text)

    assert all(char in there for char in plain(text) if char.isalnum())


@given(numbers=st.lists(st.integers(1, 12), min_size=1, max_size=5), marks=st.sampled_from(["", "**", "_", "*"]))
def test_citation_markers_are_kept(numbers: list[int], marks: str) -> None:
    text = " ".join(f"{marks}Revenue rose{marks} [{number}]." for number in numbers)

    assert re.findall(r"\[(\d+)\]", plain(text)) == [str(number) for number in numbers]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Title\nText", "Title\nText"),
        ("Title\n=====\nText", "Title\nText"),
        ("One **bold** and *slanted* and __both__ and _thin_ word.", "One bold and slanted and both and thin word."),
        ("***All***, ~~gone~~.", "All, gone."),
        ("* one\n+ two\n- three\n1. four", "- one\n- two\n- three\n1. four"),
        ("> quoted\n> > twice", "quoted\ntwice"),
        ("Above\n\n---\n\nBelow", "Above\n\n\nBelow"),
        ("Call `run_now()` now.", "Call run_now() now."),
        ("``a ` b``", "a ` b"),
        ("```python\nx = 2 ** 3\n# kept\n```\nDone", "x = 2 ** 3\n# kept\nDone"),
        ('See [the *manual*](http://x.test/a "t") and ![a chart](c.png).', "See the manual and a chart."),
        ("It rose [1], [2, 3].", "It rose [1], [2, 3]."),
        ("It rose [1](http://x.test).", "It rose [1](http://x.test)."),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "| a | b |\n| 1 | 2 |"),
        ("snake_case, 2*3*4, 2 * 3, ~5 km, 5* hotel, a_b_c.", "snake_case, 2*3*4, 2 * 3, ~5 km, 5* hotel, a_b_c."),
        (r"Not \*marked\* but \[1\].", r"Not *marked* but \[1\]."),
        ("#hashtag and C# and a > b", "#hashtag and C# and a > b"),
        ("Name: ____", "Name: ____"),
        ("an [unfinished", "an [unfinished"),
        ("Wow! [sic] **", "Wow! [sic] **"),
    ],
)
def test_markdown_marks_are_removed_and_their_text_kept(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_prose_is_shown_as_it_comes() -> None:
    writer = PlainText()

    assert [writer.feed(piece) for piece in ("Revenue ", "**rose", "** by", " 12% [", "1].")] == [
        "Revenue ",
        "rose",
        " by",
        " 12% ",
        "[1].",
    ]


@pytest.mark.parametrize("mark", ["[", "`", "*", "-", "# ", "![a](", "> "])
def test_a_mark_that_never_ends_is_shown_after_a_while_as_before(mark: str) -> None:
    text = f"{mark * 600} end"

    assert plain(*text) == plain(text)
    assert plain(text).endswith("end")
