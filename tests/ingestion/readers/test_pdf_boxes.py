"""ingestion.readers.pdf_boxes: the words under the boxes are the passage's."""

import random
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pypdfium2
import pytest

from ingestion.errors import Encrypted, Malformed
from ingestion.extraction import LocalExtractor
from ingestion.readers.pdf_boxes import read_boxes
from ingestion.types import Extraction, ExtractionLimits, PageBoxes, PageSpan
from tests.ingestion.pdf_file import Shown, locked_pdf, pdf_bytes, raw_pdf, set_pdf

DOCUMENTS = Path(__file__).parents[4] / "shared/data/documents/pdf"
HEIGHT = 792


def extracted(path: Path) -> Extraction:
    return LocalExtractor(ExtractionLimits(ocr_pages=0)).extract(path, filename=path.name)


def spans_of(extraction: Extraction, start: int, end: int) -> list[PageSpan]:
    return [
        PageSpan(
            page.number,
            extraction.text[page.start_char : page.end_char],
            max(start, page.start_char) - page.start_char,
            min(end, page.end_char) - page.start_char,
        )
        for page in extraction.pages
        if max(start, page.start_char) < min(end, page.end_char)
    ]


def boxes_of(path: Path, content: bytes, passage: str, *, last: bool = False) -> Sequence[PageBoxes]:
    path.write_bytes(content)
    extraction = extracted(path)
    start = extraction.text.rindex(passage) if last else extraction.text.index(passage)
    return read_boxes(path, spans_of(extraction, start, start + len(passage)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.pdf"


def test_a_sentence_has_one_box_on_its_line(path: Path) -> None:
    content = set_pdf([[Shown(72, 700, "Alpha beta gamma."), Shown(72, 686, "Delta epsilon zeta.")]])

    (page,) = boxes_of(path, content, "Delta epsilon")
    ((left, top, right, bottom),) = page.boxes

    assert (page.number, page.width, page.height, page.exact) == (1, 612, 792, True)
    assert page.words == page.words_found > 0
    assert left == pytest.approx(72, abs=1)
    assert top < HEIGHT - 690 < HEIGHT - 686 < bottom  # from above the letters to below their baseline
    assert bottom - top < 16
    assert 120 < right < 145  # the last word of the line is not in it


def test_a_passage_over_two_lines_has_a_box_on_each(path: Path) -> None:
    content = set_pdf(
        [[Shown(72, 700, "The rain in spring was long and"), Shown(72, 686, "heavy, and nobody minded.")]]
    )

    (page,) = boxes_of(path, content, "long and heavy")
    first, second = page.boxes

    assert first[0] > 160
    assert second[0] == pytest.approx(72, abs=1)
    assert second[1] > first[1]
    assert page.exact


def test_columns_keep_their_boxes_apart(path: Path) -> None:
    left = [Shown(72, 700 - 12 * n, f"Left column line number {n} is here") for n in range(6)]
    right = [Shown(330, 700 - 12 * n, f"Right column line number {n} is there") for n in range(6)]

    (page,) = boxes_of(path, set_pdf([[*left, *right]]), "number 3 is there Right column line number 4")

    assert len(page.boxes) == 2
    assert all(box[0] >= 329 for box in page.boxes)
    assert page.boxes[0][1] < HEIGHT - (700 - 36) < page.boxes[0][3]


def test_a_repeated_sentence_is_marked_where_it_was_cited(path: Path) -> None:
    lines = [
        "The pump was tested in March.", "All valves held.", "It ran for nine hours without a fault.",
        "The pump was tested in April.", "All valves held.", "Two seals had to be replaced afterwards.",
    ]  # fmt: skip
    content = set_pdf([[Shown(72, 700 - 30 * n, line) for n, line in enumerate(lines)]])

    (first,) = boxes_of(path, content, "All valves held.")
    (second,) = boxes_of(path, content, "All valves held.", last=True)

    assert first.boxes[0][1] < HEIGHT - 670 < first.boxes[0][3]
    assert second.boxes[0][1] < HEIGHT - 580 < second.boxes[0][3]


def test_a_word_that_breaks_at_a_lines_end_is_in_both_lines_boxes(path: Path) -> None:
    content = set_pdf(
        [[Shown(72, 700, "We found the arrangement too compli-"), Shown(72, 688, "cated for daily use.")]]
    )

    (page,) = boxes_of(path, content, "complicated")

    assert len(page.boxes) == 2
    assert page.exact
    assert page.boxes[1][0] == pytest.approx(72, abs=1)


def test_a_passage_over_a_page_break_has_boxes_on_both_pages(path: Path) -> None:
    content = pdf_bytes([["The first page ends here."], ["The second page begins here."]])

    first, second = boxes_of(path, content, "ends here.\n\nThe second page")

    assert (first.number, second.number) == (1, 2)
    assert len(first.boxes) == len(second.boxes) == 1
    assert first.exact
    assert second.exact


@pytest.mark.parametrize(
    ("rotation", "width", "height"), [(0, 400, 600), (90, 600, 400), (180, 400, 600), (270, 600, 400)]
)
def test_boxes_are_where_the_ink_is_on_a_page_that_is_turned_and_cut(
    path: Path, rotation: int, width: int, height: int
) -> None:
    content = b"BT /F1 20 Tf 150 300 Td (Turned) Tj ET"
    path.write_bytes(
        raw_pdf(
            [
                b"<< /Type /Catalog /Pages 2 0 R >>",
                b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /CropBox [100 50 500 650] /Rotate %d "
                b"/Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>" % rotation,
                b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            ]
        )
    )

    (page,) = read_boxes(path, [PageSpan(1, "Turned", 0, 6)])
    ((left, top, right, bottom),) = page.boxes

    assert (page.width, page.height) == (width, height)
    with closing(pypdfium2.PdfDocument(path)) as document:
        picture = document[0].render(scale=1).to_numpy().min(axis=2)
    rows, columns = (picture < 128).nonzero()
    assert left - 1 <= columns.min() <= columns.max() <= right + 1
    assert top - 1 <= rows.min() <= rows.max() <= bottom + 1
    assert (right - left) * (bottom - top) < 3 * (columns.max() - columns.min()) * (rows.max() - rows.min())


def test_what_is_not_on_the_page_has_no_box(path: Path) -> None:
    path.write_bytes(pdf_bytes([["Something else entirely."], []]))

    missing, empty, beyond = (
        read_boxes(path, [PageSpan(number, "A passage that is not printed here.", 0, 35)]) for number in (1, 2, 3)
    )

    assert [(page.boxes, page.exact) for page in (*missing, *empty)] == [((), False), ((), False)]
    assert [(page.words, page.words_found) for page in (*missing, *empty)] == [(7, 0), (7, 0)]
    assert beyond == ()


def test_what_is_drawn_beyond_the_edge_of_the_page_has_no_box(path: Path) -> None:
    content = set_pdf([[Shown(72, 700, "The left page of a spread."), Shown(700, 700, "The right page of it.")]])

    (page,) = boxes_of(path, content, "The right page of it.")

    assert (page.boxes, page.exact) == ((), False)


def test_white_space_alone_has_no_box_and_lacks_nothing(path: Path) -> None:
    path.write_bytes(pdf_bytes([["Some words."]]))

    (page,) = read_boxes(path, [PageSpan(1, "Some words.", 4, 5)])

    assert (page.boxes, page.exact, page.words) == ((), True, 0)


def test_a_locked_and_a_broken_file_are_refused(path: Path) -> None:
    span = PageSpan(1, "Some words.", 0, 4)
    path.write_bytes(locked_pdf([["Some words."]], password="hunter2"))
    with pytest.raises(Encrypted):
        read_boxes(path, [span])
    assert read_boxes(path, [span], password="hunter2")[0].exact

    path.write_bytes(b"%PDF-1.4 and nothing")
    with pytest.raises(Malformed):
        read_boxes(path, [span])


def words_of(text: str) -> list[str]:
    return re.findall(r"\w{3,}", text)


def under(document: pypdfium2.PdfDocument, page: PageBoxes) -> str:
    """The text under the boxes, without what splits words."""
    with closing(document[page.number - 1]) as shown, closing(shown.get_textpage()) as textpage:
        left, _, _, top = shown.get_bbox()
        parts = [
            textpage.get_text_bounded(box[0] + left, top - box[3], box[2] + left, top - box[1]) for box in page.boxes
        ]
    return re.sub(r"[\s\ufffe\x02\u00ad-]+", "", "".join(parts))


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the shared documents are not here")
def test_the_words_of_real_passages_are_under_their_boxes() -> None:
    """Random sentences of every file that has text."""
    choice = random.Random(9)
    words = found = passages = exact = mostly = 0
    for path in sorted(DOCUMENTS.glob("*.pdf")):
        try:
            extraction = extracted(path)
        except Exception:  # noqa: BLE001 - scans and broken files are the readers' tests' business
            continue
        with closing(pypdfium2.PdfDocument(path)) as document:
            blocks = [block for block in extraction.blocks if block.end_char - block.start_char > 30]
            for block in choice.sample(blocks, min(5, len(blocks))):
                (page,) = read_boxes(path, spans_of(extraction, block.start_char, block.end_char))
                if document[page.number - 1].get_rotation():
                    continue
                passages += 1
                exact += page.exact
                mostly += page.words_found >= 0.9 * page.words
                if not page.exact:
                    continue
                there = under(document, page)
                wanted = words_of(extraction.text[block.start_char : block.end_char])
                words += len(wanted)
                found += sum(re.sub(r"-", "", word) in there for word in wanted)

    assert passages > 50
    assert exact / passages > 0.95
    assert mostly / passages > 0.98
    assert found / words > 0.98
