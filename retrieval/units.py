"""Finds the units of a text that can be quoted as an answer, and the pieces of each that one answer may lie in.

A sentence alone is often no answer: a heading says nothing without the text below it, and a line that ends with a colon
nothing without its list. A table's row holds several cells, and no answer crosses from one cell to the next.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval.memo import remembered
from retrieval.sentences import unit_spans
from retrieval.types import Span
from retrieval.words import word_spans

MOST_CHARS = 900
"""The longest unit that several sentences form; a single sentence may be longer."""

MOST_ITEMS = 12
_HEADING_WORDS = 12
_ROW_HEADER_CHARS = 400
_ROWS_BELOW_NAMES = 2
_LONG_WORD = 4  # characters
_LEAST_WORDS = 3  # of a line that announces lines without bullets
_BARE_LINE_CHARS = 120  # a longer line without a bullet is no item

_WORD = re.compile(r"[^\W\d_]+")
_ITEM = re.compile(r"(?:[-*•‣▪◦–+]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)])(?:\s|$)")
_BARE_ITEM = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)]$|[-*•‣▪◦–+]$")
_ENDS = re.compile(r"[.!?…。！？।؟:;][\"'”’»)\]」』]*$")
_ENDS_IN_ITEM = re.compile(r"(?:^|\s)(?:\(?(?:\d{1,3}|[A-Za-z])[.)]|[-*•‣▪◦–+])$")
_OPENS_LIST = re.compile(r":[*_ ]*$|:\s+(?:\(?[1aAiI][.)]|[-*•‣▪◦–+])$")
_MARKS_ONLY = re.compile(r"[\W_]*$")
_RULE = re.compile(r"[\s|:=_.·-]*$")
# Between two cells or two pairs of a form: a bar, a tab, a gap that no sentence has; and behind a label or a colon.
_CELL_END = re.compile(r"(?<!\s)\s*+(?:\|\s*+)++|\t+|[ \u00a0]{3,}|(?<=[^\W\d_]:)\s+|(?<=\):)\s+")
_LABEL = re.compile(r"\s*[^\W\d_][^|\n:]{0,60}:(?:\s|$)")
_URL = re.compile(r"\S*://\S+$")
# The names of values in a form, which stand below them: "Cupertino | 95014", then "(Address of offices) | (Zip Code)".
_NAMES_ABOVE = re.compile(r"(?:\([^()|\n]{3,120}\)[\s|]*)+$")


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a text that is quoted as a whole.

    Attributes:
        span: Its characters in the text: one sentence, or several that belong together.
        core: The sentence by which it is scored; the rest belongs to it (a heading before, a list after).
        pieces: Where an answer may lie: cells of a row, values behind their labels, else the sentences of `span`. A
            heading above a blank line is none.
        heading: Whether it is like a heading, with no sentence that it could take.
    """

    span: Span
    core: Span
    pieces: tuple[Span, ...]
    heading: bool = False


def units_of(text: str) -> list[Unit]:
    r"""The units of `text` in reading order; offsets are code points of `text`.

    A heading-like sentence (short, without digits and without a stop) takes the sentence after it. A sentence that
    ends with a colon, or consists of a list's number, takes the items of the list, each of which is also a unit of
    its own. A table's row takes the row that names its columns where that is near; a form's line has its own labels and
    takes nothing but the line below it if that names its values in brackets. Lines of marks alone, and addresses alone,
    are no units.

    Example:
        >>> [text[u.span.start_char : u.span.end_char] for u in units_of("Our values are:\n- trust\n- speed")]
        ['Our values are:\n- trust\n- speed', '- trust', '- speed']
    """
    return list(_units(text))


def is_heading_line(line: str) -> bool:
    """Whether a sentence is like a heading: short, on one line, without digits, and ended by no stop."""
    if line.startswith("#"):
        return True
    if "\n" in line.strip() or any(char.isdigit() for char in line) or _ENDS.search(line) or "|" in line:
        return False
    words = len(word_spans(line))
    return 0 < words <= _HEADING_WORDS and not _ITEM.match(line)


def is_title_case(line: str) -> bool:
    """Whether the long words of a line begin with capitals, as in titles, which write short ones small."""
    return all(word[0].isupper() for word in _WORD.findall(line) if len(word) >= _LONG_WORD)


@remembered
def _units(text: str) -> tuple[Unit, ...]:
    spans = [span for span in unit_spans(text) if not _says_nothing(text[slice(*span)])]
    found: list[Unit] = []
    taken: set[int] = set()
    for at, (start, end) in enumerate(spans):
        if at in taken:
            continue
        line = text[start:end]
        if found and _names_line_above(text, spans, at):
            above = found[-1]
            found[-1] = replace(
                above, span=Span(above.span.start_char, end), core=Span(above.core.start_char, end), heading=False
            )
            continue
        if _is_row(line):
            first = _table_start(text, spans, at)
            names = _names_columns(text, spans, at)
            found.append(Unit(Span(first, end), Span(start, end), _cells(text, start, end), heading=names))
            continue
        if at + 1 < len(spans) and (_opens_list(line) or _BARE_ITEM.match(line)):
            last = _list_end(text, spans, at)
            found.append(Unit(Span(start, last), Span(start, last), _pieces(text, spans, start, last)))
            continue
        heading = is_heading_line(line)
        if heading and at + 1 < len(spans):
            following, stop = spans[at + 1]
            next_line = text[following:stop]
            if _joins_heading(next_line) and stop - start <= MOST_CHARS:
                taken.add(at + 1)
                apart = "\n\n" in text[end:following]
                pieces = _pieces(text, spans, following if apart else start, stop)
                found.append(Unit(Span(start, stop), Span(start, stop), pieces))
                continue
        found.append(Unit(Span(start, end), Span(start, end), _pieces(text, spans, start, end), heading))
    return tuple(found)


def _says_nothing(line: str) -> bool:
    """Whether a line consists of marks, or of an address alone."""
    return bool(_MARKS_ONLY.match(line) or _URL.match(line))


def _names_line_above(text: str, spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether a line consists of names in brackets, directly below a line of their values."""
    (start, end), (above, stop) = spans[at], spans[at - 1]
    if "\n" not in text[stop:start] or "\n\n" in text[stop:start] or _NAMES_ABOVE.match(text[above:stop]):
        return False
    return bool(_NAMES_ABOVE.match(text[start:end]))


def _is_row(line: str) -> bool:
    return "|" in line and not _RULE.match(line)


def _joins_heading(following: str) -> bool:
    """Whether a sentence says what the heading before it announces."""
    if _is_row(following) or is_heading_line(following) or _opens_list(following):
        return False
    return not _BARE_ITEM.match(following)


def _opens_list(line: str) -> bool:
    """Whether a sentence announces a list: it ends with a colon, or with a colon and the first item's number."""
    return "|" not in line and bool(_OPENS_LIST.search(line))


def _list_end(text: str, spans: Sequence[tuple[int, int]], at: int) -> int:
    """The end of the list that the sentence at `at` opens, or of the one sentence behind it where no list follows."""
    start = spans[at][0]
    last, *others = spans[at + 1 : at + 1 + MOST_ITEMS]
    if not _is_first_item(text, spans[at], last):
        return last[1]
    marked = _has_mark(text[slice(*last)])
    for following in others:
        if following[1] - start > MOST_CHARS or not _continues_list(text, last, following, marked=marked):
            break
        last = following
    return last[1]


def _is_first_item(text: str, opening: tuple[int, int], following: tuple[int, int]) -> bool:
    """Whether the sentence that follows the opening of a list is its first item: marked, or a short line of its own."""
    announcement, line = text[slice(*opening)], text[slice(*following)]
    if _has_mark(line) or _ENDS_IN_ITEM.search(announcement):  # the item's mark may be taken for the opening's end
        return True
    own_line = "\n" in text[opening[1] : following[0]]
    return own_line and len(line) < _BARE_LINE_CHARS and len(word_spans(announcement)) >= _LEAST_WORDS


def _continues_list(text: str, last: tuple[int, int], following: tuple[int, int], *, marked: bool) -> bool:
    """Whether a sentence belongs to the list of which `last` is the last sentence so far.

    An item with a bullet or a number does, also behind blank lines. So does a further sentence on the same line. The
    next line does unless it is a heading; where the first item is `marked`, it has to be a row.
    """
    line = text[slice(*following)]
    line_breaks = text[last[1] : following[0]].count("\n")
    if _ITEM.match(line) or line_breaks == 0:
        return True
    if line_breaks > 1 or line.startswith("#"):
        return False
    return _is_row(line) or not marked


def _has_mark(line: str) -> bool:
    """Whether a line is marked as an item of a list: by a bullet, by a number, or by the bars of a row."""
    return bool(_ITEM.match(line)) or _is_row(line)


def _names_columns(text: str, spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether a row is the first of a table of several and holds no digits: its cells name the columns."""
    line = text[slice(*spans[at])]
    if any(char.isdigit() for char in line) or _names_its_values(line) or at + 1 == len(spans):
        return False
    above = at and _is_row(text[slice(*spans[at - 1])]) and "\n\n" not in text[spans[at - 1][1] : spans[at][0]]
    below = _is_row(text[slice(*spans[at + 1])]) and "\n\n" not in text[spans[at][1] : spans[at + 1][0]]
    return below and not above


def _table_start(text: str, spans: Sequence[tuple[int, int]], at: int) -> int:
    """Where a row's unit starts: at the row of column names where that is the row above or the one above it.

    A line of a form, and a row of a sheet, say themselves what their values are ("Age: 85 | Sex: Male").
    """
    start = spans[at][0]
    if _names_its_values(text[slice(*spans[at])]):
        return start
    for first in range(at - 1, max(-1, at - 1 - _ROWS_BELOW_NAMES), -1):
        gap = text[spans[first][1] : spans[first + 1][0]]
        if not _is_row(text[slice(*spans[first])]) or gap.strip("|-: \n\t") or "\n\n" in gap:
            break
        if _names_columns(text, spans, first):
            return spans[first][0] if start - spans[first][0] <= _ROW_HEADER_CHARS else start
    return start


def _names_its_values(line: str) -> bool:
    """Whether at least half of the cells of a row begin with a label."""
    cells = [cell for cell in line.strip("| ").split("|") if cell.strip()]
    return 2 * sum(bool(_LABEL.match(cell)) for cell in cells) >= len(cells)


def _pieces(text: str, spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[Span, ...]:
    """The sentences within a unit, those with cells or labels cut at them."""
    found: list[Span] = []
    for begin, stop in spans:
        if begin >= end:
            break
        if stop > start and not _BARE_ITEM.match(text[begin:stop]):
            found += _cells(text, max(begin, start), min(stop, end))
    return tuple(found) if found or "|" in text[start:end] else (Span(start, end),)


def _cells(text: str, start: int, end: int) -> tuple[Span, ...]:
    """The parts of a line that one answer may lie in: cells, and what follows a label or a colon; else the line.

    A label ("Phone:") is no answer where something follows it; behind another value it cannot be told from that value.
    """
    line = text[start:end]
    at, parts, behind_colon = 0, [], False
    for gap in _CELL_END.finditer(line):
        label = line[at : gap.start()].endswith(":") and not behind_colon
        if not label and not _BARE_ITEM.match(line[at : gap.start()]):
            parts.append((at, gap.start()))
        behind_colon = line[: gap.start()].endswith(":") and "|" not in gap.group()
        at = gap.end()
    parts.append((at, len(line)))
    found = tuple(Span(start + a, start + b) for a, b in parts if not _MARKS_ONLY.match(line[a:b]))
    return found if found or "|" in line else (Span(start, end),)
