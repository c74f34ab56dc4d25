"""Sentences of a text, by character offsets."""

import re
from itertools import pairwise

from retrieval.memo import remembered
from retrieval.words import word_spans

MOST_WORDS = 120  # longest unit that is read, kept or dropped as one: a text without full stops is split

# Full stops of scripts nupunkt was not made for: CJK, Arabic, Urdu, Devanagari, Armenian, Ethiopic,
# Burmese, Khmer. They end a sentence with or without a space behind them, closing marks included.
_STOP = re.compile(r"[。！？｡؟۔।॥։።፧၊။។៕]+[\"'”’」』）)\]】》〉»]*")
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_IN_ROW = re.compile(r"[ \t]*\|")
_GAP = re.compile(r"(?<![ \t])[ \t]*+(?:\r\n|[\n\r\v\f\x85\u2028\u2029])\s*+")
_ITEM = re.compile(r"(?:[-*•‣▪◦–+>]|#{1,6}|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)])(?:\s|$)|\|")

# A line of flowing text broken by its page is about as wide as the column; headings and cells are
# shorter. A line that goes on in small letters needs less proof.
_WIDE_LINE = 40
_NARROW_LINE = 20

# Ends of a clause, best first: a line break, then a mark before white space, then white space.
# Marks of scripts without spaces end one by themselves.
_CLAUSE_ENDS = [re.compile(r"\n+"), re.compile(r"[;:,،؛](?=\s)|[；：，、]"), re.compile(r"\s+")]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """`[start, end)` of every sentence, in code points, in order.

    Spans are disjoint, begin and end with a character that is not whitespace, and together hold
    every such character of `text`. English rules (abbreviations, initials, citations) are
    nupunkt's (Bommarito et al. 2025, arXiv:2504.04131); stops of other scripts, blank lines, list
    items, table rows and short lines end a sentence too. A line break inside flowing text does not, nor does the stop
    at the end of a cell.
    """
    return list(_sentences(text))


@remembered
def _sentences(text: str) -> tuple[tuple[int, int], ...]:
    cuts = {0, len(text)}
    cuts.update(end for _, end in _punkt_spans(text))
    cuts.update(match.end() for match in _STOP.finditer(text))
    cuts -= {at for at in cuts if _IN_ROW.match(text, at) and text[text.rfind("\n", 0, at) + 1 : at].strip()}
    line_start = 0
    for gap in _GAP.finditer(text):
        blank_line = len(_BREAK.findall(gap.group())) > 1
        if blank_line or not _flows_on(text[line_start : gap.start()], text[gap.end() : gap.end() + 8]):
            cuts.add(gap.end())
        line_start = gap.end()

    ordered = sorted(cuts)
    pieces = ((start, text[start:end]) for start, end in pairwise(ordered))
    return tuple(
        (start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()))
        for start, piece in pieces
        if piece.strip()
    )


def unit_spans(text: str, *, most_words: int = MOST_WORDS) -> list[tuple[int, int]]:
    """`[start, end)` of every sentence of `text`, one of more than `most_words` words in parts of at most so many.

    Thai has no full stops, logs and tables may have none, and a text may be hostile: a necessary
    step must not depend on one endless sentence. A part ends at the last line break in
    its second half, else the last mark, else the last white space, else after a word; where words
    have no spaces every character counts as a word.
    """
    if most_words == MOST_WORDS:
        return list(_units(text))
    return [part for start, end in sentence_spans(text) for part in _parts(text, start, end, most_words)]


@remembered
def _units(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(part for start, end in sentence_spans(text) for part in _parts(text, start, end, MOST_WORDS))


def _parts(text: str, start: int, end: int, most_words: int) -> list[tuple[int, int]]:
    words = word_spans(text[start:end])
    parts = []
    first = 0
    while len(words) - first > most_words:
        middle, limit = words[first + most_words // 2][0], words[first + most_words][0]
        half = text[start + middle : start + limit]
        cuts = ([match.end() for match in mark.finditer(half)] for mark in _CLAUSE_ENDS)
        cut = next((middle + ends[-1] for ends in cuts if ends), limit)
        piece = text[start + words[first][0] : start + cut]
        parts.append((start + words[first][0], start + words[first][0] + len(piece.rstrip())))
        first = next(number for number in range(first, len(words)) if words[number][1] > cut)
        if words[first][0] < cut:  # the cut is inside a word, behind one of its marks
            words[first] = (cut, words[first][1])
    parts.append((start + words[first][0], end))
    return parts


def _flows_on(line: str, following: str) -> bool:
    """Whether a sentence of `line` may go on in the next line, which begins with `following`."""
    line = line.strip()
    if not line or not following or line.endswith(":") or "|" in line or _ITEM.match(following):
        return False
    first = following[0]
    if first.islower() or line[-1] in ",-–—(":
        return len(line) >= _NARROW_LINE
    caseless = first.isalpha() and first.lower() == first.upper()
    return len(line) >= (_NARROW_LINE if caseless else _WIDE_LINE)


def _punkt_spans(text: str) -> list[tuple[int, int]]:
    import nupunkt  # loads its model on first use, out of its own package

    spans: list[tuple[int, int]] = nupunkt.sent_spans(text)
    return spans
