"""Grammar of multipart bodies (RFC 7578, RFC 2046): whole ones with the file's bytes known, and broken ones."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

_BOUNDARIES = ["b", "----WebKitFormBoundary7MA4YWxkTrZu0gW", "'()+_,-./:=?", "a b", "0" * 70, "--", "b\xe9"]
_LINE_ENDS = ["\r\n", "\n", "\r", "\r\r\n", "\n\r"]

_BYTES = st.lists(
    st.binary(max_size=12)
    | st.sampled_from([b"\r\n", b"\n", b"\r", b"--", b"--b", b"\r\n--", b"\r\n-", b"\r\n--c", b"\0", b"\x1a", b"--b--"])
    | st.binary(min_size=1, max_size=40).map(lambda piece: piece * 200),
    max_size=8,
).map(b"".join)
_TEXT = st.lists(
    st.sampled_from(
        ["Forty ships. ", "\r\n", "\n", "\r", "--b", "\r\n--c\r\n", "é", "日本", "\u2028", "🙂", "-", "--"]
    ),
    min_size=1,
    max_size=12,
).map(lambda pieces: f"Salt. {''.join(pieces)}".encode())
_FILENAMES = [
    'filename="a.txt"', "filename=a.txt", 'filename="a \\"b\\".txt"', 'filename="größe.txt"', 'filename=""', "",
    "filename*=UTF-8''%e2%82%ac.txt", 'filename="a.txt"; filename="b.txt"', 'filename="a;b=c.txt"',
    'filename="..\\..\\a.txt"', 'filename="a%0d%0ab.txt"', 'FileName="a.txt"', 'filename = "a.txt"',
]  # fmt: skip
_USUAL_FILENAMES = ['filename="a"', "filename=a", 'filename="notes of 2025"', 'filename="größe"']
_EXTRA_HEADERS = [
    "Content-Type: text/plain", "Content-Type: text/plain; charset=utf-16", "Content-Transfer-Encoding: base64",
    "Content-Transfer-Encoding: quoted-printable", "Content-Length: 3", "X-Y: z", "content-type:application/pdf",
    "Content-Type: multipart/mixed; boundary=c",
]  # fmt: skip
_ODD_HEADERS = [
    "", "no colon", ": no name", "X Y: z", "X-Y: z\r\n folded", "X-Y: \x00", "X-Y: é", "X-Y: " + "z" * 20_000,
    'Content-Disposition: form-data; name="file"; filename="b.txt"', "Content-Disposition: attachment",
    "Content-Disposition: form-data", "Content-Disposition:", 'Content-Disposition: form-data; name="file',
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """A form as the bytes of its header and body; `file` is what must be stored, None where nothing is known of it."""

    content_type: bytes
    body: bytes
    file: bytes | None


@st.composite
def forms(draw: Any, *, fields: dict[str, str], text: bool) -> Form:
    """A form by the standard, with `fields` and a file of text or of any bytes."""
    boundary = draw(st.sampled_from(_BOUNDARIES[:5]))
    contents = _TEXT if text else _BYTES.map(lambda found: b"%PDF-1.4\n" + found)  # a PDF may hold any bytes
    content = draw(contents.filter(lambda found: f"\r\n--{boundary}".encode() not in found))
    parts = [_part(boundary, f'form-data; name="{name}"', [], value.encode()) for name, value in fields.items()]
    headers = draw(st.lists(st.sampled_from(_EXTRA_HEADERS), max_size=2, unique_by=lambda line: line[:12].lower()))
    filename = draw(st.sampled_from(_USUAL_FILENAMES))
    file = _part(boundary, f'form-data; name="file"; {filename}', headers, content)
    parts.insert(draw(st.integers(0, len(parts))), file)
    preamble = draw(st.sampled_from([b"", b"\r\n"]))
    epilogue = draw(st.sampled_from([b"", b"\r\n", b"\r\nThe end."]))
    body = preamble + b"".join(parts) + f"--{boundary}--".encode() + epilogue
    return Form(_content_type(boundary), body, content)


@st.composite
def broken_forms(draw: Any, *, fields: dict[str, str]) -> Form:
    """A form that breaks the standard here and there, or uses a rare part of it."""
    boundary = draw(st.sampled_from(_BOUNDARIES))
    end = draw(st.sampled_from(_LINE_ENDS))
    names = st.sampled_from(["file", "purpose", "metadata", "wait", "", "file[]", "FILE", "x" * 300, "\xe9", "fi\0le"])
    body = draw(st.sampled_from([b"", b"preamble", b"\r\n\r\n", b"--"]))
    chosen = [*fields.items(), *draw(st.lists(st.tuples(names, st.sampled_from(["", "1", "{}", "x"])), max_size=3))]
    for name, value in chosen:
        body += _part(boundary, f'form-data; name="{name}"', [], value.encode(), end=end)
    for _ in range(draw(st.integers(0, 2))):
        disposition = draw(st.sampled_from(['form-data; name="file"', "form-data; name=file", "form-data", "file"]))
        headers = draw(st.lists(st.sampled_from(_EXTRA_HEADERS + _ODD_HEADERS), max_size=3))
        filename = draw(st.sampled_from(_FILENAMES))
        content = draw(st.one_of(_TEXT, _BYTES, st.just(_nested())))
        body += _part(boundary, f"{disposition}; {filename}", headers, content, end=end)
    body += (
        draw(st.sampled_from(["--{}--\r\n", "--{}--", "--{}", "", "--{}-", "--"])).format(boundary).encode("latin-1")
    )
    content_type = draw(
        st.sampled_from(
            [_content_type(boundary), b"multipart/form-data", b"multipart/form-data; boundary=",
             b"multipart/mixed; boundary=b",
             b'multipart/form-data; boundary="b', b"multipart/form-data; charset=utf-16; boundary=b",
             b"multipart/form-data;boundary=b;boundary=c",
             b"Multipart/Form-Data; boundary=b", b"multipart/form-data; boundary*=UTF-8''b",
             b"multipart/form-data; boundary=\xe9"]
        )
    )  # fmt: skip
    return Form(content_type, _mutated(body, draw(_MUTATIONS)), None)


_MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["drop", "cut", "repeat", "insert", "flip"]),
        st.integers(0, 600),
        st.integers(1, 40),
        st.sampled_from([b"\r", b"\n", b"\r\n", b"--", b"\0", b'"', b";", b"\xff", b"\r\n\r\n", b"--b\r\n", b"--b--"]),
    ),
    max_size=3,
)


def _mutated(body: bytes, mutations: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, place, length, piece in mutations:
        at = min(place, len(body))
        before, middle, after = body[:at], body[at : at + length], body[at + length :]
        match kind:
            case "drop":
                body = before + after
            case "cut":
                body = before
            case "repeat":
                body = before + middle * 3 + after
            case "insert":
                body = before + piece + middle + after
            case _:
                body = before + bytes(byte ^ 0x20 for byte in middle) + after
    return body


def _part(boundary: str, disposition: str, headers: list[str], content: bytes, *, end: str = "\r\n") -> bytes:
    head = end.join([f"--{boundary}", f"Content-Disposition: {disposition}", *headers, "", ""])
    return head.encode("utf-8") + content + end.encode()


def _content_type(boundary: str) -> bytes:
    return f'multipart/form-data; boundary="{boundary}"'.encode("latin-1")


def _nested() -> bytes:
    inner = _part("c", 'attachment; filename="x.txt"', ["Content-Type: text/plain"], b"inside")
    return inner + b"--c--\r\n"
