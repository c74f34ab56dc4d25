"""Sentences of a text, by character offsets."""

import re
from itertools import pairwise

# Full stops of scripts nupunkt was not made for: CJK, Arabic, Urdu, Devanagari, Armenian, Ethiopic,
# Burmese, Khmer. They end a sentence with or without a space behind them, closing marks included.
_STOP = re.compile(r"[。！？｡؟۔।॥։።፧၊။។៕]+[\"'”’」』）)\]】》〉»]*")
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_GAP = re.compile(r"[ \t]*(?:\r\n|[\n\r\v\f\x85\u2028\u2029])\s*")
_ITEM = re.compile(r"(?:[-*•‣▪◦–+>]|#{1,6}|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)])(?:\s|$)|\|")

# A line of flowing text broken by its page is about as wide as the column; headings and cells are
# shorter. A line that goes on in small letters needs less proof.
_WIDE_LINE = 40
_NARROW_LINE = 20


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """`[start, end)` of every sentence, in code points, in order.

    Spans are disjoint, begin and end with a character that is not whitespace, and together hold
    every such character of `text`. English rules (abbreviations, initials, citations) are
    nupunkt's (Bommarito et al. 2025, arXiv:2504.04131); stops of other scripts, blank lines, list
    items, table rows and short lines end a sentence too. A line break inside flowing text does not.
    """
    cuts = {0, len(text)}
    cuts.update(end for _, end in _punkt_spans(text))
    cuts.update(match.end() for match in _STOP.finditer(text))
    line_start = 0
    for gap in _GAP.finditer(text):
        blank_line = len(_BREAK.findall(gap.group())) > 1
        if blank_line or not _flows_on(text[line_start : gap.start()], text[gap.end() : gap.end() + 8]):
            cuts.add(gap.end())
        line_start = gap.end()

    ordered = sorted(cuts)
    pieces = ((start, text[start:end]) for start, end in pairwise(ordered))
    return [
        (start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()))
        for start, piece in pieces
        if piece.strip()
    ]


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
