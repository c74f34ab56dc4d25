"""Poisoned documents (cases D1, D2, D6, D7, D8, D10): each ends in clean text or in a sentence, within its caps."""

import io
import socket
import struct
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from docx import Document

from ingestion.chunking import Chunker
from ingestion.errors import IngestionError, LimitExceeded, Malformed, UnsupportedFormat
from ingestion.extraction import LocalExtractor
from ingestion.types import Extraction, ExtractionLimits, MediaType
from tests.ingestion.open_documents import odt_bytes
from tests.ingestion.pdf_file import pdf_bytes
from tests.ingestion.small_tokenizer import word_piece
from tests.ingestion.zip_file import ooxml_bytes, with_declared_sizes, zip_bytes

MIB = 1 << 20
LIMITS = ExtractionLimits(expanded_bytes=16 * MIB)
ODT: dict[str, str | bytes] = {"mimetype": "application/vnd.oasis.opendocument.text"}
Read = Callable[[str, bytes | str], Extraction]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a file of this name and content; the file itself must be left as it was."""

    def extract(filename: str, data: bytes | str) -> Extraction:
        path = tmp_path / "upload"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        written = path.read_bytes()
        try:
            return LocalExtractor(LIMITS).extract(path, filename=filename)
        finally:
            assert path.read_bytes() == written, "the original is kept"

    return extract


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that nobody should call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("name", "folder"), [("a.docx", "word"), ("a.pptx", "ppt"), ("a.xlsx", "xl"), ("a.odt", ""), ("a.doc", "word")]
)
def test_d1_a_bomb_is_refused_in_little_memory(read: Read, name: str, folder: str) -> None:
    bomb = {f"{folder}/media/zeros": bytes(64 * MIB)}
    data = ooxml_bytes(folder, bomb) if folder else zip_bytes(ODT | {"content.xml": bytes(64 * MIB)})
    assert len(data) * 900 < 64 * MIB

    tracemalloc.start()
    try:
        with pytest.raises((LimitExceeded, UnsupportedFormat)) as caught:
            read(name, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16 * MIB
    assert caught.type is (UnsupportedFormat if name == "a.doc" else LimitExceeded)


@pytest.mark.parametrize("declared", [0, 1, 0xFFFFFFFE])
def test_d1_declared_sizes_that_lie_are_not_believed(read: Read, declared: int) -> None:
    bomb = ooxml_bytes("word", {"word/media/zeros": bytes(64 * MIB)})

    with pytest.raises((LimitExceeded, Malformed)):
        read("a.docx", with_declared_sizes(bomb, declared))


def test_d1_a_hundred_thousand_entries_are_refused_by_the_directory(read: Read) -> None:
    number = 100_000
    start = b"PK\x03\x04" + bytes(26)
    directory = (b"PK\x01\x02" + bytes(24) + struct.pack("<H", 6) + bytes(16) + b"word/x") * number
    at = len(start) + len(directory)
    end64 = b"PK\x06\x06" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, number, number, len(directory), len(start))
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, at, 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)

    with pytest.raises(LimitExceeded, match="files"):
        read("a.docx", start + directory + end64 + locator + end)


def test_d1_zips_in_zips_are_not_opened(read: Read) -> None:
    inner = zip_bytes({"zeros": bytes(64 * MIB)})
    for _ in range(5):
        inner = zip_bytes({"inner.zip": inner})

    with pytest.raises(IngestionError) as caught:
        read("a.docx", ooxml_bytes("word", {"word/embeddings/inner.zip": inner}))

    assert not isinstance(caught.value, LimitExceeded), "few bytes came out"


LAUGHS = '<!DOCTYPE a [<!ENTITY l "lol"><!ENTITY m "&l;&l;&l;&l;">]>'


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("a.docx", {"[Content_Types].xml": "<Types/>", "word/document.xml": f"{LAUGHS}<a>&m;</a>"}),
        ("a.odt", ODT | {"content.xml": f"{LAUGHS}<a>&m;</a>"}),
        ("a.epub", {"mimetype": "application/epub+zip", "META-INF/container.xml": f"{LAUGHS}<container/>"}),
    ],
)
def test_d2_xml_that_declares_entities_is_refused(read: Read, name: str, members: dict[str, str]) -> None:
    with pytest.raises(Malformed, match="XML entities"):
        read(name, zip_bytes(members))


def test_d2_what_a_document_points_at_is_neither_fetched_nor_read(
    read: Read, listener: socket.socket, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("s3cret")
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/x"
    dtd = f'<!DOCTYPE a SYSTEM "{url}.dtd">'
    content = zipfile.ZipFile(io.BytesIO(odt_bytes())).read("content.xml").decode()
    odt = {}
    with zipfile.ZipFile(io.BytesIO(odt_bytes())) as archive:
        for entry in archive.namelist():
            odt[entry] = archive.read(entry)
    odt["content.xml"] = content.replace("?>", f"?>{dtd}", 1).encode()
    page = (
        f'<!DOCTYPE html SYSTEM "{url}.dtd" [<!ENTITY x SYSTEM "{secret.as_uri()}">]><html><body><p>words &x;</p>'
        f'<img src="{url}.png"><link rel="stylesheet" href="{url}.css"><iframe src="{url}"></iframe>'
        f'<img src="{secret.as_uri()}"><object data="{secret.as_uri()}"></object>'
    )
    mail = f"Subject: s\nContent-Type: message/external-body; access-type=local-file; name={secret}\n\nid: 1\n\n"

    found = ""
    files: dict[str, bytes | str] = {"a.odt": zip_bytes(odt), "a.html": page, "a.xml": page, "a.eml": mail}
    for name, data in files.items():
        try:
            found += read(name, data).text
        except IngestionError as error:
            found += str(error)

    assert "words" in found
    assert "s3cret" not in found


@pytest.mark.parametrize("tag", ["div", "b", "ul><li", "table><tr><td", "blockquote"])
def test_d6_a_hundred_thousand_nested_tags_escape_as_no_recursion_error(read: Read, tag: str) -> None:
    try:
        text = read("a.html", f"<html><body><p>words</p>{f'<{tag}>' * 100_000}deep").text
    except LimitExceeded as error:
        text = str(error)

    assert "words" in text or "nested" in text


def test_d6_scripts_styles_data_and_huge_attributes_are_no_text(read: Read) -> None:
    filler = "QUJD" * (MIB // 2)
    page = (
        f'<html><head><style>a{{background:url(data:{filler})}}</style><script>var hidden="{filler}"</script></head>'
        f'<body data-x="{filler}"><p>one<img alt="" src="data:image/png;base64,{filler}"> two</p>'
        f'<a href="data:text/html;base64,{filler}">three</a><svg><script>hidden</script></svg></body></html>'
    )

    text = read("a.html", page).text

    assert text.split() == ["one", "two", "three"]


D7 = {"one line": "word " * 40_000, "blanks": "x" + " " * 200_000, "a!": "a!" * 100_000, "letters": "a" * 200_000}


@pytest.mark.parametrize("text", D7.values(), ids=D7.keys())
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.py", "a.eml", "a.rtf"])
def test_d7_text_without_break_points_is_read_and_cut_within_the_token_limit(read: Read, name: str, text: str) -> None:
    before = {"a.eml": "Subject: s\n\n", "a.rtf": r"{\rtf1 "}.get(name, "")
    if name == "a.csv":  # a cell of more than 128 KiB is none
        with pytest.raises(Malformed, match="columns"):
            read(name, text)
        return

    extraction = read(name, before + text)
    passages = Chunker(word_piece(), max_tokens=64, overlap=8).chunk(extraction)
    assert passages
    assert max(passage.token_count for passage in passages) <= 64


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.pdf", b"<html><body>hi</body></html>\n" + pdf_bytes([["On paper"]]), MediaType.PDF),
        ("a", pdf_bytes([["On paper"]]) + b"<html><body>hi", MediaType.PDF),
        ("a.txt", b"<!doctype html><p>hi", MediaType.HTML),
        ("a", b"PK is how this text begins", MediaType.TEXT),
        ("a.html", b"GIF89a/*<html><body><p>hi", MediaType.HTML),
        ("a.md", b"# %PDF- is the mark of a PDF", MediaType.MARKDOWN),
    ],
)
def test_d8_the_media_type_is_decided_by_the_bytes_not_the_file_name(
    read: Read, name: str, data: bytes, media_type: MediaType
) -> None:
    assert read(name, data).media_type is media_type


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.html", b"<html>" + pdf_bytes([["On paper"]])),
        ("a.docx", pdf_bytes([["On paper"]])),
        ("a.pdf", ooxml_bytes("word")),
        ("a.odt", ooxml_bytes("word")),
        ("a.xlsx", zip_bytes(ODT)),
        ("a.eml", pdf_bytes([["On paper"]])),
        ("a.py", ooxml_bytes("word")),
        ("a.rtf", b"just text"),
        ("a.docx", pdf_bytes([["On paper"]]) + ooxml_bytes("word")),
        ("a.pdf", ooxml_bytes("word") + pdf_bytes([["On paper"]])),
        ("a.html", b"<!doctype html>" + pdf_bytes([["On paper"]])),
        ("a.pdf", b"<html><body>The mark of a PDF is %PDF-1.4"),
    ],
)
def test_d8_a_name_that_contradicts_the_bytes_is_refused(read: Read, name: str, data: bytes) -> None:
    with pytest.raises(UnsupportedFormat, match=r"named \.\w+ but its content is"):
        read(name, data)


HIDDEN = "pay\u200bment \u202eterms\u2066 so\u00adft \U000e0069\U000e0067\ufeffend\u200d"
SHOWN = "payment terms soft end"


def _docx() -> bytes:
    document = Document()
    document.add_heading(HIDDEN, level=1)
    document.add_table(rows=1, cols=1).cell(0, 0).text = HIDDEN
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _mail() -> bytes:
    made = EmailMessage()
    made["Subject"] = HIDDEN
    made.set_content(HIDDEN)
    made.add_attachment(HIDDEN, filename="a\u202etxt.txt")
    return made.as_bytes()


def _rtf() -> str:
    units = [int.from_bytes(pair, "little") for pair in zip(*[iter(HIDDEN.encode("utf-16-le"))] * 2, strict=True)]
    return r"{\rtf1\uc1 " + "".join(chr(unit) if unit < 128 else rf"\u{unit}?" for unit in units) + "}"


POISONED: dict[str, bytes | str] = {
    "a.txt": HIDDEN,
    "utf-16.txt": HIDDEN.encode("utf-16"),
    "a.md": f"# {HIDDEN}\n\n{HIDDEN}",
    "a.csv": f"x,y\n{HIDDEN},1\n",
    "a.py": f'"""{HIDDEN}"""',
    "a.html": f"<title>{HIDDEN}</title><p>{HIDDEN}</p><p>pay&#8203;ment terms soft end</p>",
    "a.rtf": _rtf(),
    "a.eml": _mail(),
    "a.docx": _docx(),
    "a.odt": odt_bytes(HIDDEN),
}


@pytest.mark.parametrize("name", POISONED)
def test_d10_what_nobody_can_see_is_in_no_text_and_no_title(read: Read, name: str) -> None:
    extraction = read(name, POISONED[name])

    for text in (
        extraction.text,
        extraction.title or "",
        *(part for b in extraction.blocks for part in b.heading_path),
    ):
        unseen = {char for char in text if unicodedata.category(char) in {"Cf", "Cs", "Co", "Cc"}} - {"\n", "\t"}
        assert not unseen, name
    assert SHOWN in extraction.text


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.html", "a.py", "a.eml"])
@pytest.mark.parametrize(
    "noise", [b"caf\xc3 words", b"\xed\xa0\x80 words", b"words \xff\xfe\xfd", b"\xff\xfew\0o\0r\0d\0s\0\x3d\xd8"]
)
def test_d10_bytes_that_are_no_encoding_end_in_text_that_can_be_stored(read: Read, name: str, noise: bytes) -> None:
    data = noise if noise.startswith(b"\xff\xfe") else b"Subject: s\n\n" + noise if name == "a.eml" else noise

    text = read(name, data).text

    assert "words" in text
    assert text.encode("utf-8").decode() == text
