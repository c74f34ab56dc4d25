"""Small PDFs written by hand, so that the tests know every byte of what they read."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

_PAD = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")  # ISO 32000-1 §7.6.3.3


@dataclass(frozen=True, slots=True)
class Shown:
    """A text on a page: where its baseline begins, in points from the lower left corner, and its font."""

    left: float
    baseline: float
    text: str
    size: float = 10
    bold: bool = False


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


def set_pdf(pages: Sequence[Sequence[Shown]], *, outline: Sequence[tuple[int, str, int]] = ()) -> bytes:
    """A PDF whose pages show texts where they are put; `outline` has bookmarks as level, title, page from 0."""
    first_page, first_mark = 5, 5 + 2 * len(pages)
    catalog = b"<< /Type /Catalog /Pages 2 0 R %s >>" % (b"/Outlines %d 0 R" % first_mark if outline else b"")
    kids = b" ".join(b"%d 0 R" % (first_page + 2 * at) for at in range(len(pages)))
    objects = [
        catalog,
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
    ]
    for at, page in enumerate(pages):
        content = b"\n".join(
            b"BT /F%d %g Tf %g %g Td (%s) Tj ET"
            % (2 if shown.bold else 1, shown.size, shown.left, shown.baseline, _escaped(shown.text))
            for shown in page
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>" % (first_page + 2 * at + 1)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    if outline:
        objects += _outline(outline, first_mark, first_page)
    return raw_pdf(objects)


def _outline(outline: Sequence[tuple[int, str, int]], root: int, first_page: int) -> list[bytes]:
    """The tree of bookmarks, its root being object `root` and the others following it (§12.3.3)."""
    children: dict[int, list[int]] = {}
    above = [root]
    for number, (level, _, _) in enumerate(outline, start=root + 1):
        above = [*above[:level], number]
        children.setdefault(above[level - 1], []).append(number)

    def family(number: int) -> bytes:
        own = children.get(number)
        return b"/First %d 0 R /Last %d 0 R /Count %d" % (own[0], own[-1], len(own)) if own else b""

    objects = [b"<< /Type /Outlines %s >>" % family(root)]
    for number, (_, title, page) in enumerate(outline, start=root + 1):
        parent, siblings = next((up, own) for up, own in children.items() if number in own)
        later = [sibling for sibling in siblings if sibling > number]
        objects.append(
            b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /Fit] %s %s >>"
            % (
                _escaped(title),
                parent,
                first_page + 2 * page,
                b"/Next %d 0 R" % later[0] if later else b"",
                family(number),
            )
        )
    return objects


def locked_pdf(pages: Sequence[Sequence[str]], *, password: str) -> bytes:
    """A PDF that opens with `password`, by the standard security handler, revision 2, 40 bits (§7.6.3)."""
    identifier, permissions = bytes(16), (-4).to_bytes(4, "little", signed=True)
    padded = (password.encode() + _PAD)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + permissions + identifier).digest()[:5]

    def sealed(match: re.Match[bytes]) -> bytes:
        number = int(match["number"])
        salted = hashlib.md5(key + number.to_bytes(3, "little") + bytes(2)).digest()[:10]
        return match["head"] + _rc4(salted, match["content"]) + b"\nendstream"

    stream = re.compile(
        rb"(?P<head>(?P<number>\d+) 0 obj\n<< /Length \d+ >>\nstream\n)(?P<content>.*?)\nendstream", re.DOTALL
    )
    handler = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >> /ID [<%s> <%s>] " % (
        owner.hex().encode(),
        _rc4(key, _PAD).hex().encode(),
        identifier.hex().encode(),
        identifier.hex().encode(),
    )
    return stream.sub(sealed, pdf_bytes(pages)).replace(b"trailer << ", b"trailer << " + handler)


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def raw_pdf(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects, numbered from 1, the first being the catalog."""
    return _file(objects, root=1, info=None)


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
