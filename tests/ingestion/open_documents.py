"""OpenDocument files made by the library that makes them for everyone."""

import io

from odfdo import Document, DrawPage, Frame, Header, Paragraph, Row, Table
from odfdo import List as Bullets

ROWS = (("city", "people"), ("Oslo", "717710"), ("Bergen", "291940"))


def _table(name: str) -> Table:
    table = Table(name)
    for values in ROWS:
        row = Row()
        row.set_values(list(values))
        table.append_row(row)
    return table


def _saved(document: Document) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def odt_bytes(paragraph: str = "Before the lake 🦆.") -> bytes:
    document = Document("text")
    document.body.clear()
    document.body.append(Header(1, "Report"))
    document.body.append(Paragraph(paragraph))
    document.body.append(Header(2, "Ducks"))
    document.body.append(Bullets(["one", "two"]))
    document.body.append(_table("Cities"))
    last = Paragraph("A claim.")
    last.insert_note(after="claim", note_id="note1", citation="1", body="What the note says.")
    document.body.append(last)
    return _saved(document)


def ods_bytes() -> bytes:
    document = Document("spreadsheet")
    document.body.clear()
    document.body.append(_table("Cities"))
    document.body.append(_table("Towns"))
    return _saved(document)


def odp_bytes() -> bytes:
    document = Document("presentation")
    document.body.clear()
    for number, words in enumerate(("alpha", "gamma"), start=1):
        page = DrawPage(f"page{number}", name=f"Slide {number}")
        page.append(Frame.text_frame(words, size=("7cm", "5cm"), position=("1cm", "1cm")))
        document.body.append(page)
    return _saved(document)
