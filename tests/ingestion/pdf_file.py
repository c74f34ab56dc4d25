"""Small PDFs written by hand, so that the tests know every byte of what they read."""

from collections.abc import Sequence


def pdf_bytes(pages: Sequence[Sequence[str]], *, title: str | None = None) -> bytes:
    """A PDF 1.4 whose pages show the given lines in Helvetica; an empty page shows nothing (ISO 32000-1 §7.5)."""
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    catalog = add(b"<< /Type /Catalog /Pages 2 0 R >>")
    add(b"")  # the page tree, written once its kids are known
    font = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for lines in pages:
        content = _content(lines)
        stream = add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        kids.append(
            add(
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
                b"/Resources << /Font << /F1 %d 0 R >> >> >>" % (stream, font)
            )
        )
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    info = add(b"<< /Title (%s) >>" % title.encode("latin-1")) if title else None
    return _file(objects, root=catalog, info=info)


def _content(lines: Sequence[str]) -> bytes:
    shown = b" ".join(b"(%s) Tj T*" % _escaped(line) for line in lines)
    return b"BT /F1 12 Tf 14 TL 72 720 Td %s ET" % shown


def _escaped(line: str) -> bytes:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("latin-1")


def _file(objects: Sequence[bytes], *, root: int, info: int | None) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    trailer = b"/Size %d /Root %d 0 R" % (len(objects) + 1, root)
    if info is not None:
        trailer += b" /Info %d 0 R" % info
    out += b"trailer << %s >>\nstartxref\n%d\n%%%%EOF\n" % (trailer, xref)
    return bytes(out)
