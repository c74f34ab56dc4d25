"""ingestion.sections cuts at headings and joins what is too small to stand alone."""

from dataclasses import replace

from ingestion.builder import TextBuilder
from ingestion.sections import Section, join_tiny, sections
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType


def document(*parts: tuple[int, str] | str) -> Extraction:
    """A heading where a part has a level, a paragraph where it is a text."""
    builder = TextBuilder(ExtractionLimits())
    for part in parts:
        if isinstance(part, str):
            builder.append(BlockKind.PARAGRAPH, part)
        else:
            builder.append(BlockKind.HEADING, part[1], level=part[0])
    return builder.build(MediaType.HTML)


def joined(extraction: Extraction, *, tiny: int = 5, most: int = 12) -> list[Section]:
    def words(start: int, end: int) -> int:
        return len(extraction.text[start:end].split())

    return join_tiny(sections(extraction), count_tokens=words, tiny=tiny, most=most)


def shown(extraction: Extraction, cut: list[Section]) -> list[tuple[str, str]]:
    return [
        (" > ".join(section.heading_path), " ".join(extraction.text[section.start_char : section.end_char].split()))
        for section in cut
    ]


def with_furniture(extraction: Extraction, *texts: str) -> Extraction:
    """The extraction with the blocks of these texts as furniture."""
    return replace(
        extraction,
        blocks=tuple(
            replace(block, kind=BlockKind.FURNITURE)
            if extraction.text[block.start_char : block.end_char] in texts
            else block
            for block in extraction.blocks
        ),
    )


LONG = "a b c d e f g h"


def test_a_document_without_headings_is_one_section() -> None:
    extraction = document("one", "two")

    assert sections(extraction) == [Section(0, len(extraction.text), (), bare=False)]


def test_sections_follow_the_headings_without_a_gap() -> None:
    extraction = document("before", (1, "A"), "in a", (2, "B"), "in b", (1, "C"), "in c")

    cut = sections(extraction)

    assert shown(extraction, cut) == [("", "before"), ("A", "A in a"), ("A > B", "B in b"), ("C", "C in c")]
    assert [section.end_char for section in cut[:-1]] == [section.start_char for section in cut[1:]]


def test_a_bare_heading_joins_the_section_below_it() -> None:
    extraction = document((1, "A"), (2, "B"), LONG, (2, "C"), LONG)

    assert shown(extraction, joined(extraction)) == [("A > B", f"A B {LONG}"), ("A > C", f"C {LONG}")]


def test_a_heading_with_nothing_below_it_is_kept() -> None:
    extraction = document((1, "A"), LONG, (1, "End"))

    assert shown(extraction, joined(extraction))[-1] == ("End", "End")


def test_tiny_neighbours_under_one_parent_become_one_section_under_it() -> None:
    extraction = document((1, "A"), LONG, (2, "B"), "b", (2, "C"), "c", (2, "D"), LONG)

    assert shown(extraction, joined(extraction)) == [("A", f"A {LONG}"), ("A", "B b C c"), ("A > D", f"D {LONG}")]


def test_tiny_sections_of_different_parents_stay_apart() -> None:
    extraction = document((1, "A"), LONG, (2, "B"), "b", (1, "C"), LONG, (2, "D"), "d")

    assert [path for path, _ in shown(extraction, joined(extraction))] == ["A", "A > B", "C", "C > D"]


def test_a_run_of_tiny_sections_ends_at_the_most_it_may_hold() -> None:
    parts: list[tuple[int, str] | str] = []
    for name in "ABCDEFGH":
        parts += [(1, name), "x y"]
    extraction = document(*parts)

    cut = joined(extraction, most=6)

    assert [text for _, text in shown(extraction, cut)] == ["A x y B x y", "C x y D x y", "E x y F x y", "G x y H x y"]


def test_furniture_is_in_no_section_and_keeps_its_neighbours_apart() -> None:
    extraction = with_furniture(
        document("menu", (1, "A"), "one", "footer", "two", "three", (2, "B"), "four"), "menu", "footer"
    )

    assert shown(extraction, sections(extraction)) == [
        ("A", "A one"),
        ("A", "two three"),
        ("A > B", "B four"),
    ]
    assert shown(extraction, joined(extraction)) == [("A", "A one"), ("A", "two three B four")]


def test_a_bare_heading_does_not_reach_over_furniture() -> None:
    extraction = with_furniture(document((1, "A"), "footer", (2, "B"), LONG), "footer")

    assert shown(extraction, joined(extraction)) == [("A", "A"), ("A > B", f"B {LONG}")]
