"""Locates spans of canonical text on the pages of a PDF, as one rectangle per printed line."""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

from ingestion.alignment import NOWHERE, aligned, found_words, is_found
from ingestion.errors import IngestionError, Malformed
from ingestion.readers.pdf import opened
from ingestion.types import PageBoxes, PageSpan

_LINE_END = frozenset("\r\n\ufffe")  # the last is pdfium's sign for a hyphen at a line's end
_SKIPPED = 3  # characters that may be missing in a box
_BESIDE = 1.5  # heights that two boxes of one line may be apart

Box = tuple[float, float, float, float]  # left, top, right, bottom, as the page is shown


def read_boxes(path: Path, spans: Sequence[PageSpan], *, password: str | None = None) -> tuple[PageBoxes, ...]:
    """The boxes of each span, in their order; a page that pdfium cannot load is left out.

    Raises:
        IngestionError: The file is no PDF that opens, or breaks on the way.
    """
    try:
        with closing(opened(path, password)) as document:
            found = [_page_boxes(document, span) for span in spans if 0 < span.number <= len(document)]
    except IngestionError:
        raise
    except Exception as error:  # a hostile file
        raise Malformed("The file is damaged, or not what it claims to be.") from error
    return tuple(page for page in found if page is not None)


def _page_boxes(document: pypdfium2.PdfDocument, span: PageSpan) -> PageBoxes | None:
    try:
        page = document[span.number - 1]
    except pypdfium2.PdfiumError:
        return None
    with closing(page), closing(page.get_textpage()) as textpage:
        width, height = page.get_size()
        printed = textpage.get_text_range()
        found = aligned(span.text, printed)
        wanted = sorted({place for place in found[span.start : span.end] if place != NOWHERE})
        index = _identity if textpage.count_chars() == len(printed) else _mapped(textpage)
        shown = _shown(page)
        drawn = [
            (run, box)
            for run in _runs(wanted, printed)
            if (box := _around([_char_box(textpage, index(place), shown) for place in run])) is not None
        ]
        # A page of a spread may also contain the other page's text, beyond its edge.
        on_page = [(run, _within(box, width, height)) for run, box in drawn]
        seen = [(run, box) for run, box in on_page if box[2] > box[0] and box[3] > box[1]]
        in_sight = {place for run, _ in seen for place in run}
        words, words_found = found_words(span.text, found, span.start, span.end, where=in_sight)
        return PageBoxes(
            number=span.number,
            width=width,
            height=height,
            boxes=tuple(_joined([box for _, box in seen])),
            exact=len(seen) == len(drawn) and is_found(span.text, found, span.start, span.end),
            words=words,
            words_found=words_found,
        )


def _identity(place: int) -> int:
    return place


def _mapped(textpage: pypdfium2.PdfTextPage) -> Callable[[int], int]:
    return lambda place: int(pdfium.FPDFText_GetCharIndexFromTextIndex(textpage, place))


def _runs(places: Sequence[int], printed: str) -> list[list[int]]:
    """Neighbours on one printed line together."""
    runs = [[place] for place in places[:1]]
    for before, place in pairwise(places):
        between = printed[before + 1 : place]
        if _LINE_END.isdisjoint(between) and len("".join(between.split())) <= _SKIPPED:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _char_box(textpage: pypdfium2.PdfTextPage, index: int, shown: Callable[[Box], Box]) -> Box | None:
    """The box of a character in its font, or where that is no area, the one its ink fills."""
    rect = pdfium.FS_RECTF()
    if pdfium.FPDFText_GetLooseCharBox(textpage, index, rect) and rect.right > rect.left and rect.top > rect.bottom:
        return shown((rect.left, rect.top, rect.right, rect.bottom))
    try:
        left, bottom, right, top = textpage.get_charbox(index)
    except pypdfium2.PdfiumError:
        return None
    return shown((left, top, right, bottom)) if right > left and top > bottom else None


def _shown(page: pypdfium2.PdfPage) -> Callable[[Box], Box]:
    """From the page's own coordinates, whose origin may be anywhere, to those of the page as it is shown."""
    left, bottom, right, top = page.get_bbox()
    match page.get_rotation():
        case 90:
            return lambda box: (box[3] - bottom, box[0] - left, box[1] - bottom, box[2] - left)
        case 180:
            return lambda box: (right - box[2], box[3] - bottom, right - box[0], box[1] - bottom)
        case 270:
            return lambda box: (top - box[1], right - box[2], top - box[3], right - box[0])
        case _:
            return lambda box: (box[0] - left, top - box[1], box[2] - left, top - box[3])


def _around(boxes: Sequence[Box | None]) -> Box | None:
    some = [box for box in boxes if box is not None]
    if not some:
        return None
    lefts, tops, rights, bottoms = zip(*some, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _within(box: Box, width: float, height: float) -> Box:
    """The part of a box that is on the page, to a hundredth of a point."""
    left, top, right, bottom = box
    return _clipped(left, width), _clipped(top, height), _clipped(right, width), _clipped(bottom, height)


def _clipped(length: float, most: float) -> float:
    return round(min(max(length, 0.0), most), 2)


def _joined(boxes: Sequence[Box]) -> list[Box]:
    """Neighbours on one line as one: pdfium breaks lines at a raised note number and at a change of font."""
    result: list[Box] = []
    for box in boxes:
        before = result[-1] if result else None
        if before is not None:
            height = min(before[3] - before[1], box[3] - box[1])
            overlap = min(before[3], box[3]) - max(before[1], box[1])
            gap = max(before[0], box[0]) - min(before[2], box[2])
            if overlap > 0.5 * height and gap < _BESIDE * height:
                result[-1] = _around([before, box]) or before
                continue
        result.append(box)
    return result
