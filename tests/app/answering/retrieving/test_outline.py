"""app.answering.retrieving.outline: title, opening and headings are exact slices, bounded, and say something."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.retrieving.outline import (
    MOST_HEADINGS,
    OPENING_CHARS,
    abstract_block,
    first_lines,
    heading_blocks,
    named_line,
    opening_of,
    outline,
    title_span,
)
from ingestion.types import Block, BlockKind
from retrieval.types import Span

H, P, L, R, F = (
    BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.TABLE_ROW, BlockKind.FURNITURE
)  # fmt: skip
PROSE = "The plant in Oslo closed on 4 May after a fire in which nobody was hurt."
MORE = "It opened again in June, when the northern hall had been rebuilt entirely."


def document(*parts: tuple[BlockKind, str] | tuple[BlockKind, str, int]) -> tuple[str, list[Block]]:
    """A text of these blocks; a heading has the level 0 or the one given."""
    text, blocks, path = "", [], list[str]()
    for kind, shown, *level in parts:
        text += "\n\n" if text else ""
        if kind is H:
            path = path[: level[0] if level else 0]
        blocks.append(Block(kind, len(text), len(text) + len(shown), 1, tuple(path)))
        path = [*path, shown] if kind is H else path
        text += shown
    return text, blocks


def opening(*parts: tuple[BlockKind, str]) -> str:
    text, blocks = document(*parts)
    found = opening_of(text, blocks)
    return "" if found is None else text[found.span.start_char : found.span.end_char]


def is_said_in_prose(*parts: tuple[BlockKind, str]) -> bool:
    text, blocks = document(*parts)
    found = opening_of(text, blocks)
    assert found is not None
    return found.prose


def headings(*parts: tuple[BlockKind, str] | tuple[BlockKind, str, int], title: str = "") -> list[str]:
    text, blocks = document(*parts)
    found = outline(
        heading_blocks(blocks, title=title_span(text, title)), lambda block: text[block.start_char : block.end_char]
    )
    return [text[span.start_char : span.end_char] for span in found]


def test_the_opening_is_the_first_prose() -> None:
    assert opening((H, "Report"), (P, "4 May 2023"), (P, "and so it went on, in the middle of a sentence we lack."),
                   (P, PROSE), (P, "Best regards,"), (P, MORE)) == PROSE  # fmt: skip


def test_short_prose_goes_on_with_the_next_paragraph_of_its_section() -> None:
    assert opening((P, PROSE), (P, MORE)) == f"{PROSE}\n\n{MORE}"
    assert opening((P, PROSE), (H, "Later"), (P, MORE)) == PROSE
    assert opening((P, PROSE), (F, "Page 1 of 4"), (P, MORE)) == PROSE


class Touched(list[Block]):
    """Blocks that count how many of them are read."""

    def __init__(self, blocks: list[Block]) -> None:
        super().__init__(blocks)
        self.read = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.read += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self) -> Iterator[Block]:
        raise AssertionError("all blocks of a document are read for its opening")


def test_only_blocks_of_the_window_are_read_for_an_opening() -> None:
    text, blocks = document(*[(P, "x")] * 20_000)
    touched = Touched(blocks)

    assert opening_of(text[:3_000], touched) is not None
    assert touched.read < 5_000


def test_whole_sentences_fill_the_opening() -> None:
    found = opening((P, " ".join([PROSE] * 20)))

    assert len(found) <= OPENING_CHARS < len(found) + len(PROSE) + 1
    assert found.endswith("hurt.")


def test_a_list_belongs_to_what_announces_it_and_no_number_is_left_behind() -> None:
    announced = "To get started with swimming, first lay down in the water and then:"
    steps = " ".join(f"{number}. {PROSE}" for number in range(1, 20))

    assert opening((P, announced), (L, "look around"), (L, "paddle")) == f"{announced}\n\nlook around\n\npaddle"
    assert opening((P, announced), (P, PROSE)).startswith(announced)
    assert opening((P, announced), (R, "a | b")) == f"{announced}\n\na | b", "there is no prose"
    assert opening((P, steps)).endswith("hurt.")


def test_a_table_opens_with_its_first_rows() -> None:
    assert opening((H, "Cups"), (R, "Team | Cups"), (R, "Blues | 1")) == "Team | Cups\n\nBlues | 1"
    assert opening((H, "Cups")) == ""


def test_rows_forms_and_questions_are_no_prose_that_says_what_a_document_is() -> None:
    check = "Indicate by check mark whether the registrant has filed all reports required to be filed last year."

    assert is_said_in_prose((P, PROSE))
    assert is_said_in_prose((H, "Cups"), (R, "Team | Cups"), (P, MORE))
    assert is_said_in_prose((P, f"How did the plant in Oslo come to close so suddenly in May? {PROSE}"))
    assert not is_said_in_prose((H, "Cups"), (R, "Team | Cups"), (R, "Blues | 1"))
    assert not is_said_in_prose((P, "Name"), (P, "Check"), (P, "Submit"))
    assert not is_said_in_prose((P, check))
    assert not is_said_in_prose((P, "☐ The undersigned has read the conditions of the plant in Oslo and accepts them."))
    assert not is_said_in_prose(
        (P, "23. If there is a plant (e.g. in the city of Oslo), who closed it, and in which month of the year?")
    )


def test_lines_before_the_first_sentence_of_a_paragraph_are_left_out() -> None:
    facts = "Iwan Roberts\nFull name Iwan Wyn Roberts\nHeight 6 ft 3 in (1.91 m)\nYears Team Apps (Gls)"
    poem = "The Road\nTwo roads diverged in a yellow wood,\nAnd sorry I could not travel both"

    assert opening((P, f"{facts}\n{PROSE}\n{MORE}")) == f"{PROSE}\n{MORE}"
    assert opening((P, f"To all. {PROSE}")) == f"To all. {PROSE}", "a short sentence is one"
    assert opening((P, f"{poem}\n" * 4)).startswith("The Road")


def test_a_text_without_paragraphs_opens_within_its_first_characters() -> None:
    text, blocks = document((P, "\n".join([PROSE] * 500)))
    found = opening_of(text[:12_000], blocks)

    assert found is not None and found.prose
    assert text[found.span.start_char : found.span.end_char] == "\n".join([PROSE] * 8)
    assert opening_of(text[:2_000], blocks) is None, "its first sentences may be cut"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "Exhibit 10.1\n\nSTRATEGIC ALLIANCE\nAGREEMENT\n\nThis agreement is made in May.",
            "STRATEGIC ALLIANCE\nAGREEMENT",
        ),
        ("House of Ink\nAnnual Report of the Board\nIt rained.", "Annual Report of the Board"),
        ("# Safety Handbook:\nRead it.", "Safety Handbook"),
        ("This agreement is made in May.\nIt was a long report", None),
        ("DUCKS\n\n\n\nLEASE", "LEASE"),
        ("\n  SUPPLY AGREEMENT\n\nmade in May", "SUPPLY AGREEMENT"),
        ("a | report", None),
    ],
)
def test_a_name_is_the_first_line_that_is_written_like_a_title(text: str, line: str | None) -> None:
    lines = first_lines(text)
    assert lines is not None
    found = named_line(text, lines)

    assert (found and text[found.start_char : found.end_char]) == line


def test_first_lines_of_nothing_are_none() -> None:
    assert first_lines(" \n") is None


def test_a_long_sentence_of_a_script_without_spaces_is_prose() -> None:
    assert is_said_in_prose((P, "昔々ある所に子供のいない老夫婦が住んでいた" * 8 + "出典: 百科事典"))


def test_the_abstract_is_below_a_heading_that_says_so() -> None:
    _, blocks = document((H, "On Ducks"), (P, MORE), (H, "Abstract"), (P, PROSE), (H, "Methods"), (P, MORE))

    assert abstract_block(blocks) == blocks[3]
    assert abstract_block(blocks[:2]) is None


def test_the_title_is_a_line_in_any_case_and_over_several_lines() -> None:
    text = "4 May\n\nTHE EVOLUTION OF\nTHE WORD PROCESSOR\n\nThe evolution of the word processor is long."
    found = title_span(text, "The Evolution of the Word Processor")

    assert found is not None
    assert text[found.start_char : found.end_char] == "THE EVOLUTION OF\nTHE WORD PROCESSOR"
    assert title_span(text, "evolution of the word") is None, "no whole line"
    assert title_span(text, "") is None


def test_the_outline_is_of_the_first_levels_that_have_several_headings() -> None:
    parts = ((H, "Ducks"), (P, PROSE), (H, "Food", 1), (H, "In winter", 2), (P, MORE), (H, "Breeding", 1),
             (H, "References", 1), (H, "Food", 1))  # fmt: skip

    assert headings(*parts, title="Ducks") == ["Food", "Breeding"]
    assert headings(*parts) == ["Ducks", "Food", "Breeding"]
    assert headings((H, "Ducks"), (P, PROSE)) == [], "one heading is no outline"
    assert headings((H, "TOTAL $821.14"), (H, "*98765*"), (H, "x" * 500), (H, "Page 1 of 4"), (H, "Ducks")) == []


texts = st.sampled_from(
    [PROSE, MORE, "Ducks", "Food\nand drink", "1.", " a | b", f"{PROSE} " * 12, "鴨は水鳥である。" * 9, "x" * 3000]
)
parts = st.lists(st.tuples(st.sampled_from([H, P, L, R, F]), texts, st.integers(0, 3)), max_size=16)


@settings(deadline=None)
@given(parts=parts, start=st.integers(0, 3), title=st.sampled_from(["", "Ducks", "Food and drink", "x (y"]))
def test_all_is_sliced_out_of_the_text_and_bounded(
    parts: list[tuple[BlockKind, str, int]], start: int, title: str
) -> None:
    text, blocks = document(*parts)
    at = blocks[start].start_char if start < len(blocks) else 0
    named, found = title_span(text, title), opening_of(text[at:], blocks, start=at)
    opened = None if found is None else found.span
    spans = outline(heading_blocks(blocks, title=named), lambda block: text[block.start_char : block.end_char])

    if opened is not None:
        shown = text[opened.start_char : opened.end_char]
        assert at <= opened.start_char < opened.end_char <= len(text)
        assert shown == shown.strip() != ""
        assert len(shown) <= max(OPENING_CHARS, 1_500)
    if named is not None:
        assert text[named.start_char : named.end_char].casefold().split() == title.casefold().split()
    assert len(spans) != 1 and len(spans) <= MOST_HEADINGS
    shown_headings = [text[span.start_char : span.end_char] for span in spans]
    assert len({one.casefold() for one in shown_headings}) == len(shown_headings)
    held = [(block.start_char, block.end_char) for block in blocks if block.kind is H]
    for span in spans:
        assert any(first <= span.start_char and span.end_char <= last for first, last in held)
        assert named is None or span.end_char <= named.start_char or named.end_char <= span.start_char
    assert list(spans) == sorted(spans, key=lambda span: span.start_char) and Span(0, 0) not in spans
