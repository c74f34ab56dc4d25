"""Office documents made by the libraries that make them for everyone."""

import io

from docx import Document
from openpyxl import Workbook  # type: ignore[import-untyped]
from pptx import Presentation
from pptx.util import Inches


def docx_bytes() -> bytes:
    document = Document()
    document.add_heading("Report", level=1)
    document.add_paragraph("Before the lake 🦆.")
    document.add_heading("Ducks", level=2)
    document.add_paragraph("one", style="List Bullet")
    document.add_paragraph("two", style="List Bullet")
    table = document.add_table(rows=0, cols=2)
    for cells in (("Name", "Weight"), ("Mallard", "1.1 kg"), ("Teal", "")):
        row = table.add_row()
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def pptx_bytes() -> bytes:
    presentation = Presentation()
    for title, body in (("First", "alpha"), (None, None), ("Third", "gamma")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5 if title else 6])
        if title:
            slide.shapes.title.text = title
            slide.shapes.add_textbox(Inches(1), Inches(3), Inches(3), Inches(1)).text_frame.text = body
    presentation.slides[2].notes_slide.notes_text_frame.text = "what the speaker says"
    out = io.BytesIO()
    presentation.save(out)
    return out.getvalue()


def xlsx_bytes() -> bytes:
    workbook = Workbook()
    cities = workbook.active
    cities.title = "Cities"
    for row in (("city", "people"), ("Oslo", 717710), ("Bergen", 291940)):
        cities.append(row)
    notes = workbook.create_sheet("Notes")
    notes["B2"] = "a single remark"
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()
