"""Detects a file's format by its bytes. Cheap and safe enough for the server process: no parser is imported."""

import re
import struct
from pathlib import Path
from zipfile import ZipFile

from ingestion.container import opened
from ingestion.encoding import starts_text, wide_encoding
from ingestion.errors import EmptyDocument, Encrypted, Malformed, UnsupportedFormat
from ingestion.formats import FORMATS, Family, formats_of
from ingestion.types import MediaType

_HEAD_BYTES = 8192
_PDF_HEADER_BYTES = 1024  # ISO 32000-1, appendix H.3, note 13: readers accept the header this far in

_PDF_MARK = re.compile(rb"%PDF-")
_PDF_OBJECT = re.compile(rb"\d\s+\d+\s+obj\b")  # ISO 32000-1 §7.3.10

_CLAIMS = {f".{extension}": row.media_type for row in FORMATS.values() for extension in row.extensions}
_TEXTUAL = frozenset(row.media_type for row in formats_of(Family.TEXT))
# Kinds of text that a name alone does not make.
_BY_CONTENT = frozenset({MediaType.EMAIL, MediaType.HTML, MediaType.FEED})

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OUTLOOK_STREAM = "__substg1.0_"
_ENCRYPTED_STREAM = "EncryptedPackage"  # an OOXML container inside, [MS-OFFCRYPTO] §2.3.4.4
_BY_MIMETYPE = {str(row.media_type): row.media_type for row in formats_of(Family.ZIP)}
_BEFORE_ROOT = re.compile(r"\s+|<!--.*?-->|<\?xml[^>]*>", re.IGNORECASE | re.DOTALL)
_HTML_START = re.compile(r"<(?:!doctype\s+html|html|head|body)[\s>/]", re.IGNORECASE)
# The root element of RSS 0.91 to 2.0, of Atom (RFC 4287 §4.1.1), and of RSS 0.9 and 1.0, which are RDF.
_FEED_START = re.compile(r"<(?:rss|(?:atom:)?feed|rdf:RDF)\s[^<>]{0,2000}>")
_FEED_SPACE = re.compile(
    r"<rss\s|http://www\.w3\.org/2005/Atom|http://purl\.org/rss/1\.0/|http://my\.netscape\.com/rdf"
)
_TAG = re.compile(r"</?[a-z][a-z0-9]*[\s/>]", re.IGNORECASE)
_HEADER = re.compile(r"\s{0,9}[!-9;-~]{1,100}[ \t]?:[ \t]*\S|From ")  # RFC 5322 §2.2; or the line that mbox puts first
_MAIL_HEADER = re.compile(
    r"(?:From|To|Cc|Subject|Date|Received|Return-Path|Delivered-To|Message-ID|MIME-Version|Content-Type|Reply-To"
    r"|Sender|X-[\w-]+|DKIM-Signature|Content-Transfer-Encoding):[ \t]",
    re.IGNORECASE,
)


def sniff(path: Path, *, filename: str, with_password: bool = False, with_office: bool = False) -> MediaType:
    """Detects the format of the file at `path` by its first few KiB and, for a zip, its directory.

    `filename` decides only between kinds of text (Markdown, CSV, code, plain), which bytes cannot tell
    apart, and what lies behind a password. `with_password` says that one is at hand, `with_office`
    that LibreOffice is, which reads the legacy formats.

    Raises:
        EmptyDocument: It has no bytes.
        UnsupportedFormat: It is nothing we read, or its name claims another format than its bytes.
        Encrypted: It is an Office document behind a password, and there is none.
        Malformed: It is a damaged zip container.
        LimitExceeded: It is a zip container with too many members.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise EmptyDocument("The file is empty.")
    extension = Path(filename.lower().rstrip(". ")).suffix
    media_type = _by_bytes(path, head, extension, with_password=with_password, with_office=with_office)
    claimed = _CLAIMS.get(extension)
    if claimed and claimed is not media_type and not {claimed, media_type} <= _TEXTUAL:
        content = FORMATS[media_type].name
        raise UnsupportedFormat(
            f"The file is named {extension} but its content is {content}; give it the name it deserves."
        )
    return media_type


def is_archive(path: Path) -> bool:
    """Whether the file is a zip of other files (`ingestion.archive` unpacks it), not a document in a zip container.

    Raises:
        Malformed: It is a damaged zip file.
        LimitExceeded: It has too many members.
    """
    with path.open("rb") as file:
        return file.read(4) in _ZIP and _zip(path) is None


def _by_bytes(path: Path, head: bytes, extension: str, *, with_password: bool, with_office: bool) -> MediaType:
    if head.startswith(_ZIP):  # before PDF: an archive may begin with a PDF that is stored as it is
        media_type = _zip(path)
        if media_type is None:
            raise _unsupported("a zip archive; upload the documents in it, or the archive where archives are taken")
        return media_type
    if head.startswith(_OLE):
        return _compound_file(path, head, extension, with_password=with_password, with_office=with_office)
    if _is_pdf(head):
        return MediaType.PDF
    for row in formats_of(Family.OTHER):
        if any(head.lstrip().startswith(mark.encode()) for mark in row.marks):
            return row.media_type
    if head.startswith(b"%!PS"):
        raise _unsupported("a PostScript file; save it as PDF")
    if not starts_text(head):
        raise _binary(head, extension)
    return _text(head, extension)


def _is_pdf(head: bytes) -> bool:
    """Whether a file is a PDF: one begins with its mark, or has it behind something else and then an object.

    A text may mention the mark too, such as the source of a program that reads PDFs.
    """
    found = _PDF_MARK.search(head, 0, _PDF_HEADER_BYTES)
    return found is not None and (found.start() == 0 or _PDF_OBJECT.search(head, found.end()) is not None)


def _zip(path: Path) -> MediaType | None:
    """The document in a zip container; `None` where it is an archive of whatever."""
    with opened(path) as archive:
        names = archive.namelist()
        folders = {name.split("/", 1)[0] for name in names if "/" in name}
        kind = _mimetype(archive) if "mimetype" in names else ""
    if known := _BY_MIMETYPE.get(kind.removesuffix("-template")):
        return known
    if "META-INF/container.xml" in names and not kind:
        return MediaType.EPUB
    if kind.startswith("application/vnd.oasis.opendocument."):
        raise _unsupported("an OpenDocument file other than text, spreadsheet or presentation; save it as PDF")
    if "[Content_Types].xml" in names:
        if "xl/workbook.bin" in names:
            raise _unsupported("a binary Excel workbook (.xlsb); save it as .xlsx")
        for row in formats_of(Family.OOXML):
            if not folders.isdisjoint(row.marks):
                return row.media_type
    return None


def _mimetype(archive: ZipFile) -> str:
    try:
        with archive.open("mimetype") as member:
            return member.read(100).decode("ascii", errors="replace").strip()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: the member is encrypted
        raise Malformed("The file is damaged: its zip container cannot be read.") from error


def _compound_file(path: Path, head: bytes, extension: str, *, with_password: bool, with_office: bool) -> MediaType:
    """What an OLE compound file is, by the stream names in its directory ([MS-CFB] §2.2, §2.6)."""
    names = b""
    if len(head) >= 52:
        shift, first_sector = struct.unpack_from("<H", head, 30)[0], struct.unpack_from("<L", head, 48)[0]
        with path.open("rb") as file:
            file.seek((first_sector + 1) << min(shift, 12))
            names = file.read(_HEAD_BYTES)
    if _ENCRYPTED_STREAM.encode("utf-16-le") in names:
        if not with_password:
            raise Encrypted("The document is protected by a password; upload it with the password, or without one.")
        claimed = _CLAIMS.get(extension)
        if claimed is None or FORMATS[claimed].family is not Family.OOXML:
            raise UnsupportedFormat("The name of a document behind a password must end in .docx, .pptx or .xlsx.")
        return claimed  # whoever opens it looks at the bytes again
    for row in formats_of(Family.OLE):
        if row.current and any(stream.encode("utf-16-le") in names for stream in row.marks):
            if with_office:
                return row.media_type
            current = FORMATS[row.current].extensions[0]
            raise _unsupported(f"{row.name}; save it as .{current}, or install LibreOffice on the server")
    if _OUTLOOK_STREAM.encode("utf-16-le") in names:
        raise _unsupported("an Outlook message (.msg); save it as .eml")
    raise _unsupported("a legacy Office file; save it in the current format (.docx, .pptx, .xlsx)")


def _binary(head: bytes, extension: str) -> UnsupportedFormat:
    import puremagic

    try:
        types = {match.mime_type.split("/")[0] for match in puremagic.magic_string(head) if match.confidence >= 0.3}
    except (puremagic.PureError, ValueError):
        types = set()
    what = "a binary file of a kind we do not read"
    for major, name in (("image", "an image"), ("audio", "an audio file"), ("video", "a video"), ("font", "a font")):
        if major in types:
            what = f"{name}, which holds no text we can read"
    if extension in _CLAIMS:
        return UnsupportedFormat(f"The file is named {extension} but its content looks like {what}.")
    return _unsupported(what)


def _text(head: bytes, extension: str) -> MediaType:
    wide = wide_encoding(head)
    start = head.decode(wide or "latin-1", errors="replace").lstrip("\ufeff")
    if start.startswith("\xef\xbb\xbf"):  # the UTF-8 mark, read as Latin-1
        start = start[3:]
    claimed = _CLAIMS.get(extension)
    if claimed is MediaType.EMAIL and _HEADER.match(start):
        return MediaType.EMAIL
    if claimed is None and _is_mail(start):
        return MediaType.EMAIL
    if content := _markup(start, claimed):
        return content
    if claimed is None and start.startswith("#!"):
        return MediaType.CODE
    if claimed is MediaType.FEED:  # by its name alone
        return MediaType.CODE
    return claimed if claimed in _TEXTUAL - _BY_CONTENT else MediaType.TEXT


def _markup(start: str, claimed: MediaType | None) -> MediaType | None:
    """Whether text is a feed or a page, by its first element; a page may also have the name and any element."""
    if _is_feed(start):
        return MediaType.FEED
    if claimed is not MediaType.CODE and _is_html(start):
        return MediaType.HTML
    return MediaType.HTML if claimed is MediaType.HTML and _TAG.search(start) else None


def _is_html(start: str) -> bool:
    """Whether text opens with an element of an HTML page."""
    return _HTML_START.match(start, _root(start)) is not None


def _is_feed(start: str) -> bool:
    """Whether text opens with the root element of a news feed."""
    root = _FEED_START.match(start, _root(start))
    return root is not None and _FEED_SPACE.search(root[0]) is not None


def _root(start: str) -> int:
    """Where the first element begins, after white space, comments and an XML declaration.

    Each piece before the element is matched once, in code: in one pattern a comment could end at any later `-->` too,
    and the time would double with each comment.
    """
    at = 0
    while piece := _BEFORE_ROOT.match(start, at):
        at = piece.end()
    return at


def _is_mail(start: str) -> bool:
    """Whether text opens with a block of message headers (RFC 5322 §2.2), three of them well known."""
    block = re.split(r"\r?\n\r?\n", start, maxsplit=1)[0]
    lines = [line for line in block.splitlines() if not line.startswith((" ", "\t"))]
    return bool(lines) and bool(_MAIL_HEADER.match(lines[0])) and sum(map(bool, map(_MAIL_HEADER.match, lines))) >= 3


def _unsupported(what: str) -> UnsupportedFormat:
    return UnsupportedFormat(f"This looks like {what}.")
