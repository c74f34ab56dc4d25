"""Finds what says most about a document as a whole: the line with its title, its opening or abstract, its headings.

Everything is a span of the canonical text, found from its blocks and a few thousand characters, however long it is.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from ingestion.types import Block, BlockKind
from retrieval.sentences import unit_spans
from retrieval.types import Span
from retrieval.units import is_title_case

OPENING_CHARS = 600
"""The longest opening, whole sentences; a first sentence alone may be longer."""

WINDOW_CHARS = 12_000
"""How many characters from the beginning may hold the opening of a document without an abstract."""

MOST_HEADINGS = 10

_LONGEST_SENTENCE = 1_500
_MUCH_OF_A_BLOCK = 2 * _LONGEST_SENTENCE  # characters; its first sentences are then whole
_ENOUGH_CHARS = 300  # an opening that the next paragraph need not continue
_ABSTRACT_BEFORE = 60_000  # characters; a summary further on is of a chapter
_TITLE_BEFORE = 3_000
_PROSE_LETTERS = 45
_PROSE_SHARE = 0.65  # of the characters that are not white space, letters
_UNSPACED_WEIGHT = 2  # a character of a script without spaces says as much as two letters
_OUTLINE_LEVEL = 3  # headings that a level and those above it need to be an outline
_CANDIDATES = 40
_HEADING_CHARS = 120
_ABSTRACT = re.compile(
    r"(?:\d+[.)]? )?(?:abstract|(?:executive |plain language )?summary|overview|synopsis|zusammenfassung|kurzfassung"
    r"|résumé|resumen|sommaire|riassunto|samenvatting|resumo|摘要|要旨)"
)
_NO_CONTENT = re.compile(
    r"(?:table of )?contents|references|bibliography|index|acknowledge?ments|notes|see also|external links"
    r"|further reading|page \d+(?: of \d+)?|inhalt(?:sverzeichnis)?|sommaire|table des matières|índice"
)
_SENTENCE_END = re.compile(r"[.!?…。！？।؟][\"'”’»)\]」』]*\Z")
_ANNOUNCES = re.compile(r"[:：]\Z")
_BARE_ITEM = re.compile(r"(?<!\s)\s++(?:\(?(?:\d{1,3}|[A-Za-z])[.)]|[-*•‣▪◦–+])\Z")
_ASIDE = re.compile(r"redirects? here|\(disambiguation\)|^this article is about\b", re.IGNORECASE)
_TO_FILL_IN = re.compile(r"^indicate by check ?mark\b|[☐☑☒]|\[[ xX]\]", re.IGNORECASE)
_QUESTION = re.compile(r"[?？؟]\Z")
_LINE = re.compile(r"^[ \t#*_]*(?P<line>[^\W\d_][^\n|]{0,118}?[^\W_])[ \t*_.:]*$", re.MULTILINE)
_TITLED = re.compile(
    r"\b(?:agreement|contract|amendment|addendum|lease|licen[cs]e|policy|report|plan|protocol|handbook|manual|guide"
    r"|memorandum|memo|charter|bylaws|proposal|thesis|certificate|invoice|receipt|notice|specification)s?\b",
    re.IGNORECASE,
)
_CLOSE = 2  # line breaks between the lines of one title, at most
_LEADERS = re.compile(r"(?:\. ?){5,}|_{5,}|-{5,}|={5,}")
_LIST = frozenset({BlockKind.PARAGRAPH, BlockKind.LIST_ITEM})


@dataclass(frozen=True, slots=True)
class Opening:
    """How a document begins.

    Attributes:
        span: Characters of its text.
        prose: Whether it is sentences that state something; else it is the first lines of a table or a list, a form's
            instruction or its question, which seldom say what the document is about.
    """

    span: Span
    prose: bool


def title_span(text: str, title: str) -> Span | None:
    """The first whole lines among the first of `text` whose words are the title, in any case; None without any."""
    words = title.split()
    if not words:
        return None
    found = re.compile(
        r"^[ \t#]*(" + r"\s+".join(re.escape(word) for word in words) + r")[ \t]*$", re.IGNORECASE | re.MULTILINE
    ).search(text[:_TITLE_BEFORE])
    return Span(*found.span(1)) if found is not None else None


def abstract_block(blocks: Sequence[Block]) -> Block | None:
    """The first block below a heading that announces a summary of the whole, near the beginning; None without one."""
    for block in blocks:
        if block.start_char >= _ABSTRACT_BEFORE:
            return None
        heading = block.heading_path[-1].casefold().strip(" :.#") if block.heading_path else ""
        if block.kind in _LIST and _ABSTRACT.fullmatch(heading):
            return block
    return None


def opening_of(text: str, blocks: Sequence[Block], *, start: int = 0) -> Opening | None:
    """The opening: the first prose, up to `OPENING_CHARS` of sentences that follow each other.

    In a document without prose, such as a table, it is the first lines. None where there is no text.

    Args:
        text: Characters of the document from `start` on.
        blocks: Of the whole document, in reading order; those that begin before `start` are not read, nor is one that
            ends behind `text`, unless `text` holds much of it.
        start: Where `text` begins, a block's beginning.
    """
    stop = start + len(text)
    inside = [
        block if block.end_char <= stop else replace(block, end_char=stop)
        for block in _between(blocks, start, stop)
        if (block.end_char <= stop or stop - block.start_char > _MUCH_OF_A_BLOCK)
        and block.kind not in {BlockKind.HEADING, BlockKind.FURNITURE}
    ]

    def of(block: Block) -> str:
        return text[block.start_char - start : block.end_char - start]

    def goes_on(at: int) -> bool:
        return (
            at + 1 < len(inside)
            and inside[at + 1].kind in _LIST
            and (is_prose(of(inside[at + 1])) or _in_list(of(inside[at]), inside[at], inside[at + 1]))
        )

    def opens(at: int) -> bool:
        block, shown = inside[at], of(inside[at])
        announces = bool(_ANNOUNCES.search(shown.strip()))
        return block.kind in _LIST and is_prose(shown, opens=True) and (not announces or goes_on(at))

    first = next((at for at in range(len(inside)) if opens(at)), None)
    continued: Callable[[int], bool] = goes_on
    prose = first is not None
    if first is None:
        first = next((at for at, block in enumerate(inside) if of(block).strip()), None)
        if first is None:
            return None
        continued = partial(_precedes, len(inside))
    last = first
    while (
        inside[last].end_char - inside[first].start_char < _ENOUGH_CHARS
        and continued(last)
        and not _parted(blocks, inside[last], inside[last + 1])
    ):
        last += 1
    begin = inside[first].start_char
    if prose:
        begin += _first_sentence(of(inside[first]))
    found = _sentences(text, begin - start, inside[last].end_char - start, by=start)
    if found is None:
        return None
    return Opening(found, prose and _states(text[found.start_char - start : found.end_char - start]))


def first_lines(text: str) -> Span | None:
    """The first whole sentences or lines of a text, up to `OPENING_CHARS`; None where there are none."""
    return _sentences(text, 0, min(len(text), _LONGEST_SENTENCE), by=0)


def named_line(text: str, lines: Span) -> Span | None:
    """The first of some lines that is written like a title and has a word for documents; None where there is none.

    Lines in capitals directly above it belong to it: "STRATEGIC ALLIANCE" above "AGREEMENT".
    """
    above: Span | None = None
    for found in _LINE.finditer(text, text.rfind("\n", 0, lines.start_char) + 1, lines.end_char):
        line = found["line"]
        at = Span(*found.span("line"))
        joined = above is not None and line.isupper() and text[above.end_char : at.start_char].count("\n") <= _CLOSE
        start = above.start_char if above is not None and joined else at.start_char
        if _TITLED.search(line) and is_title_case(line):
            return Span(start, at.end_char)
        above = Span(start, at.end_char) if line.isupper() and not any(map(str.isdigit, line)) else None
    return None


def is_prose(text: str, *, opens: bool = False) -> bool:
    """Whether a paragraph consists of sentences; where it `opens` the text, also that it begins with one."""
    stripped = text.strip()
    solid = sum(not char.isspace() for char in stripped)
    letters = sum(char.isalpha() for char in stripped)
    weight = letters + (_UNSPACED_WEIGHT - 1) * sum(char > "\u2e7f" and char.isalpha() for char in stripped)
    if weight < _PROSE_LETTERS or letters < _PROSE_SHARE * solid or _LEADERS.search(stripped):
        return False
    if opens and (stripped[0].islower() or _ASIDE.search(stripped)):
        return False
    ends = bool(_SENTENCE_END.search(stripped)) or (opens and bool(_ANNOUNCES.search(stripped)))
    return ends or max(len(stripped), weight) > _ENOUGH_CHARS


def heading_blocks(blocks: Sequence[Block], *, title: Span | None = None) -> list[Block]:
    """The first headings of the highest levels that together have several, in reading order, without the title's."""
    found = [
        block
        for block in blocks
        if block.kind is BlockKind.HEADING
        and not (title is not None and block.start_char < title.end_char and title.start_char < block.end_char)
    ]
    level = 0
    deepest = max((len(block.heading_path) for block in found), default=0)
    while level < deepest and sum(len(block.heading_path) <= level for block in found) < _OUTLINE_LEVEL:
        level += 1
    return [block for block in found if len(block.heading_path) <= level][:_CANDIDATES]


def outline(candidates: Sequence[Block], text_of: Callable[[Block], str]) -> tuple[Span, ...]:
    """The headings to show, at most `MOST_HEADINGS`, none twice; empty where fewer than two say something."""
    shown: dict[str, Span] = {}
    for block in candidates:
        text = text_of(block)
        if _says_something(text):
            stripped = text.strip()
            start = block.start_char + text.index(stripped)
            shown.setdefault(_folded(stripped), Span(start, start + len(stripped)))
    return tuple(shown.values())[:MOST_HEADINGS] if len(shown) > 1 else ()


def _says_something(heading: str) -> bool:
    folded = _folded(heading)
    solid, letters = sum(not char.isspace() for char in folded), sum(char.isalpha() for char in folded)
    return (
        len(folded) <= _HEADING_CHARS
        and (letters >= 3 or any(char > "\u2e7f" for char in folded))
        and 2 * letters > solid
        and not _NO_CONTENT.fullmatch(folded)
    )


def _folded(heading: str) -> str:
    return " ".join(heading.casefold().split()).strip(" :.#")


def _in_list(text: str, block: Block, following: Block) -> bool:
    """Whether a block is an item of the list that the block before it announces or belongs to."""
    announced = bool(_ANNOUNCES.search(text.strip())) or block.kind is BlockKind.LIST_ITEM
    return announced and following.kind is BlockKind.LIST_ITEM


def _states(opening: str) -> bool:
    """Whether an opening says something, and is not only what a reader of a form is to answer."""
    asks = all(_QUESTION.search(opening[first:last]) for first, last in unit_spans(opening))
    return not asks and not _TO_FILL_IN.search(opening)


def _first_sentence(paragraph: str) -> int:
    """Where the first sentence of prose begins: behind the captions, names and figures of lines of their own before it.

    A text without blank lines is one paragraph, whatever stands in its first lines.
    """
    units = unit_spans(paragraph)
    if not units or _SENTENCE_END.search(paragraph[slice(*units[0])]):
        return 0
    return next((first for first, last in units if is_prose(paragraph[first:last], opens=True)), 0)


def _precedes(count: int, at: int) -> bool:
    return at + 1 < count


def _parted(blocks: Sequence[Block], one: Block, other: Block) -> bool:
    """Whether a heading or a page's furniture lies between two blocks."""
    return bool(_between(blocks, one.end_char, other.start_char))


def _between(blocks: Sequence[Block], start: int, end: int) -> Sequence[Block]:
    """The blocks that begin in a range of characters, found without reading the others."""
    begins = attrgetter("start_char")
    return blocks[bisect_left(blocks, start, key=begins) : bisect_left(blocks, end, key=begins)]


def _sentences(text: str, start: int, end: int, *, by: int) -> Span | None:
    """The first whole sentences of `text[start:end]` within `OPENING_CHARS`; `by` is where `text` begins."""
    spans = unit_spans(text[start:end])
    if not spans:
        return None
    first, last = spans[0]
    for _, stop in spans[1:]:
        if stop - first > OPENING_CHARS:
            break
        last = stop
    if last - first > _LONGEST_SENTENCE:
        cut = text.rfind(" ", start + first + 1, start + first + OPENING_CHARS)
        last = first + OPENING_CHARS if cut < 0 else cut - start
    if (number := _BARE_ITEM.search(text[start + first : start + last])) is not None:
        last = first + number.start()  # the number of an item that is left out
    return Span(by + start + first, by + start + last)
