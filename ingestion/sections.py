"""Sections of a document: the text under one heading, tiny neighbours joined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingestion.builder import one_line
from ingestion.types import BlockKind, Extraction

_MOST_TINY_CHARS = 2048  # a longer section is not tiny, so it is not counted


@dataclass(frozen=True, slots=True)
class Section:
    """Characters `[start_char, end_char)` under `heading_path` (outermost first, the section's own heading last).

    `bare`: it has only its heading.
    """

    start_char: int
    end_char: int
    heading_path: tuple[str, ...]
    bare: bool


def sections(extraction: Extraction) -> list[Section]:
    """The text cut before every heading and around every furniture, which is left out; else in order, without a gap."""
    starts = [0]
    ends: list[int] = []
    paths: list[tuple[str, ...]] = [()]
    bare = [False]

    def cut(end: int, start: int, path: tuple[str, ...], *, is_bare: bool) -> None:
        ends.append(end)
        starts.append(start)
        paths.append(path)
        bare.append(is_bare)

    for at, block in enumerate(extraction.blocks):
        if block.kind is BlockKind.FURNITURE:
            cut(block.start_char, block.end_char, paths[-1], is_bare=False)
        elif block.kind is BlockKind.HEADING:
            following = extraction.blocks[at + 1].heading_path if at + 1 < len(extraction.blocks) else ()
            depth = len(block.heading_path)
            # Blocks have their heading's name without markup; a heading without blocks is shown as written.
            if len(following) > depth and following[:depth] == block.heading_path:
                path = following[: depth + 1]
            else:
                path = (*block.heading_path, one_line(extraction.text[block.start_char : block.end_char]).strip("# "))
            cut(block.start_char, block.start_char, path, is_bare=True)
        else:
            bare[-1] = False
    ends.append(len(extraction.text))
    found = map(Section, starts, ends, paths, bare)
    return [section for section in found if extraction.text[section.start_char : section.end_char].strip()]


def join_tiny(
    cut: Sequence[Section], *, count_tokens: Callable[[int, int], int], tiny: int, most: int
) -> list[Section]:
    """The same stretches of text in fewer sections.

    A bare heading joins the section below it. Runs of neighbours of fewer than `tiny` tokens each,
    under the same parent heading, become one section of at most `most` tokens, whose path is the part
    that their paths share. `count_tokens` counts the tokens between two offsets.
    """
    result: list[Section] = []
    run: list[Section] = []
    run_tokens = 0

    def close() -> None:
        if run:
            result.append(Section(run[0].start_char, run[-1].end_char, _shared(run), bare=False))
            run.clear()

    for section in _headings_joined(cut):
        long = section.end_char - section.start_char > _MOST_TINY_CHARS
        tokens = tiny if long else count_tokens(section.start_char, section.end_char)
        parent = run[0].heading_path[:-1] if run else ()
        apart = section.heading_path[: len(parent)] != parent or (run and run[-1].end_char != section.start_char)
        if tokens >= tiny or run_tokens + tokens > most or apart:
            close()
            run_tokens = 0
        if tokens >= tiny:
            result.append(section)
        else:
            run.append(section)
            run_tokens += tokens
    close()
    return result


def _headings_joined(cut: Sequence[Section]) -> list[Section]:
    result: list[Section] = []
    for section in reversed(cut):
        below = result[-1] if result else None
        touches = below is not None and below.start_char == section.end_char
        if section.bare and below and touches and _is_above(section, below):
            result[-1] = Section(section.start_char, below.end_char, below.heading_path, below.bare)
        else:
            result.append(section)
    return result[::-1]


def _is_above(heading: Section, section: Section) -> bool:
    return section.heading_path[: len(heading.heading_path)] == heading.heading_path


def _shared(run: Sequence[Section]) -> tuple[str, ...]:
    shared = run[0].heading_path
    for section in run[1:]:
        depth = 0
        while depth < min(len(shared), len(section.heading_path)) and shared[depth] == section.heading_path[depth]:
            depth += 1
        shared = shared[:depth]
    return shared
