"""Small valid files of each format, and damaged copies of them: flipped, cut, spliced and repeated pieces.

Containers are damaged inside their members too, since a damaged zip file is refused before any reader sees it.
"""

import io
import zipfile
from collections.abc import Mapping
from email.message import EmailMessage
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.ingestion.epub_file import book
from tests.ingestion.office_files import docx_bytes, pptx_bytes, xlsx_bytes
from tests.ingestion.open_documents import odp_bytes, ods_bytes, odt_bytes
from tests.ingestion.pdf_file import locked_pdf, pdf_bytes, set_pdf
from tests.ingestion.zip_file import zip_bytes

_PAGE = (
    '<!doctype html><html lang="en"><head><title>Ships &amp; salt</title><style>p{}</style></head><body><nav>Home</nav>'
    "<h1>Harbour</h1><p>Forty <b>ships</b>&#8203; came.</p><ul><li>one<li>two</ul><table><caption>Loads</caption>"
    "<tr><th>Ship<th>Tons</tr><tr><td rowspan=2>Ann<td>4</tr><tr><td>5</tr></table><pre>x = 1</pre></body></html>"
)
_MARKDOWN = (
    "---\ntitle: Ships\n---\n# Harbour\n\nForty *ships*[^1] came.\n\n| Ship | Tons |\n|---|--:|\n| Ann | 4 |\n\n"
    "```py\nx = 1\n```\n\n- one\n  1. two\n\n> said\n\n[^1]: Of salt.\n\nSetext\n===\n"
)
_CODE = (
    "#!/usr/bin/env python\nimport os\n\n\nclass Ship:\n    def load(self):\n        return {\n            1\n    }\n"
)
_RTF = (
    r"{\rtf1\ansi\ansicpg1252\uc1{\fonttbl{\f0 Times;}}{\info{\title Ships}}\pard\f0 Forty ships\par "
    r"\'e9\u8364?\trowd\cellx100\cellx200\intbl one\cell two\cell\row{\*\generator x}{\pict\bin3 abc}\par}"
)


@cache
def small_files() -> Mapping[str, bytes]:
    """One or more valid files of each format, by name."""
    return {
        "a.pdf": pdf_bytes([["On paper", "two lines"], ["Second page"]], title="Paper"),
        "outline.pdf": set_pdf([[]], outline=[(0, "Part", 0), (1, "Section", 0)]),
        "locked.pdf": locked_pdf([["Secret"]], password="x"),
        "a.docx": docx_bytes(),
        "a.pptx": pptx_bytes(),
        "a.xlsx": xlsx_bytes(),
        "a.odt": odt_bytes(),
        "a.ods": ods_bytes(),
        "a.odp": odp_bytes(),
        "a.epub": book(),
        "a.html": _PAGE.encode(),
        "wide.html": _PAGE.encode("utf-16"),
        "a.md": _MARKDOWN.encode(),
        "a.csv": b'Ship;Tons\r\n"Ann ""the"" first";4\r\n\r\nBob;5\r\n',
        "a.tsv": "Schiff\tTonnen\nÄnne\t4\n".encode("latin-1"),
        "a.txt": "Forty ships.\n\nEleven of them carried salt.\n".encode("utf-16-le"),
        "a.py": _CODE.encode(),
        "a.json": b'{"ships": [{"name": "Ann", "tons": 4}, null], "at": "2025-01-01"}',
        "a.xml": b'<?xml version="1.0" encoding="utf-8"?><ships><ship name="Ann">4</ship><![CDATA[<x>]]></ships>',
        "a.rtf": _RTF.encode(),
        "a.eml": _mail(),
    }


TEXTUAL = frozenset(
    {"a.html", "wide.html", "a.md", "a.csv", "a.tsv", "a.txt", "a.py", "a.json", "a.xml", "a.rtf", "a.eml"}
)
"""The files whose readers need no large library."""


def _mail() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "ann@harbour.test", "bob@harbour.test", "Schiffe für Änne"
    mail["Date"] = "Mon, 01 Sep 2025 10:00:00 +0200"
    mail.set_content("Forty ships.\n> said before\n-- \nAnn")
    mail.add_alternative("<p>Forty <b>ships</b>.</p>", subtype="html")
    mail.add_attachment(b"Ship,Tons\nAnn,4\n", maintype="text", subtype="csv", filename="loads.csv")
    mail.set_boundary("outer")
    (alternatives, *_) = mail.iter_parts()
    alternatives.set_boundary("inner")  # otherwise both are random
    return mail.as_bytes()


_PIECES = [
    b"<", b">", b"&", b"&#x110000;", b"&#xD800;", b"</", b"<!--", b"]]>", b"<?", b'"', b"'", b"\\", b"{", b"}", b"(",
    b")",
    b"[", b"]", b"|", b"`", b"\0", b"\r", b"\n\n", b"\t", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f",
    b"%",
    b"-1", b"0", b"99999999999", b"1e400", b"nan", b" 0 R ", b"endstream", b"\\bin99999999 ", b"\\u-1?",
    b"\\uc99999 ",
    b"=?utf-8?b?=?=", b"=ED=A0=80", b"Content-Type: text/plain; charset=nonsense\n", b"\xe2\x80\xae", b"<table>",
    b"<td>",
    b' rowspan="99999"', b' colspan="-1"', b' r="ZZZ999999999"', b"\xf3\xa0\x81\x81",
]  # fmt: skip
_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "drop", "cut", "repeat", "insert", "replace", "move"]),
        st.floats(0, 1),
        st.integers(1, 80),
        st.sampled_from(_PIECES),
        st.integers(0, 7),
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def damaged_files(draw: Any, *, names: frozenset[str]) -> tuple[str, bytes]:
    """The name and bytes of a damaged copy of one of the files of these names."""
    name = draw(st.sampled_from(sorted(names)))
    data = small_files()[name]
    operations = draw(_OPERATIONS)
    if not data.startswith(b"PK") or draw(st.integers(0, 4)) == 0:
        return name, damaged(data, operations)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members: dict[str, str | bytes] = {entry: archive.read(entry) for entry in archive.namelist()}
    member = draw(st.sampled_from([entry for entry in members if entry.endswith((".xml", ".rels", ".opf", ".xhtml"))]))
    found = members[member]
    assert isinstance(found, bytes), "read from the archive"
    members[member] = damaged(found, operations)
    if draw(st.integers(0, 9)) == 0:
        del members[draw(st.sampled_from(sorted(members)))]
    return name, zip_bytes(members)


def damaged(data: bytes, operations: list[tuple[str, float, int, bytes, int]]) -> bytes:
    """`data` after each operation, whose place is a share of the length."""
    for kind, share, length, piece, bit in operations:
        at = int(share * len(data))
        before, middle, after = data[:at], data[at : at + length], data[at + length :]
        match kind:
            case "flip":
                data = before + bytes(byte ^ (1 << bit) for byte in middle[:1]) + middle[1:] + after
            case "drop":
                data = before + after
            case "cut":
                data = before
            case "repeat":
                data = before + middle * (1 << bit) + after
            case "insert":
                data = before + piece + middle + after
            case "replace":
                data = before + piece + after
            case _:
                data = middle + before + after
    return data
