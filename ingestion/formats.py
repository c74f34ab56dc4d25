"""The table of file formats: names, extensions, marks and readers. Readers are named, and imported when first used."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ingestion.types import MediaType


class Family(StrEnum):
    """What the bytes of a format are, which decides how it is recognised and opened."""

    TEXT = "text"
    ZIP = "zip"
    """A zip file whose member `mimetype` holds the media type."""
    OOXML = "ooxml"
    """A zip file of Office Open XML (ECMA-376), or an OLE compound file around an encrypted one."""
    OLE = "ole"
    """An OLE compound file ([MS-CFB])."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    `name` is shown to people; `extensions` are lower-case and without the dot, the usual one first. `reader` is the
    function that reads the format, as `module:function`; a `shared_reader` reads several formats and takes the media
    type too. `marks` recognise the format within its family: the top folder in OOXML, the names of streams in OLE, the
    first bytes after white space in OTHER. A legacy format is converted to `current` before it is read.

    >>> FORMATS[MediaType.RTF].extensions
    ('rtf',)
    """

    media_type: MediaType
    family: Family
    name: str
    extensions: tuple[str, ...]
    reader: str
    shared_reader: bool = False
    marks: tuple[str, ...] = ()
    current: MediaType | None = None


_READERS = "ingestion.readers"
_OFFICE = f"{_READERS}.office:read_office"
_ODF = f"{_READERS}.office:read_odf"
_CODE = (
    "py pyi ipynb js mjs cjs jsx ts tsx java kt kts scala groovy c h cc cpp cxx hpp hh cs go rs swift m mm rb php pl pm"
    " lua r jl dart ex exs erl hs ml fs clj lisp el vb f90 asm sh bash zsh fish ps1 bat cmd sql graphql proto tf"
    " yaml yml json jsonl ndjson xml xsd xsl toml ini cfg conf properties env css scss less vue svelte"
    " dockerfile cmake gradle tex bib diff patch"
)

_ROWS = (
    # PDF's mark may stand anywhere in the first KiB, so `ingestion.sniff` has a rule of its own for it
    Format(MediaType.PDF, Family.OTHER, "a PDF", ("pdf",), f"{_READERS}.pdf:read_pdf"),
    Format(
        MediaType.DOCX, Family.OOXML, "a Word document (.docx)", ("docx", "docm", "dotx"),
        _OFFICE, shared_reader=True, marks=("word",),
    ),
    Format(
        MediaType.PPTX, Family.OOXML, "a PowerPoint presentation (.pptx)", ("pptx", "pptm", "ppsx"),
        _OFFICE, shared_reader=True, marks=("ppt",),
    ),
    Format(
        MediaType.XLSX, Family.OOXML, "an Excel workbook (.xlsx)", ("xlsx", "xlsm"),
        _OFFICE, shared_reader=True, marks=("xl",),
    ),
    Format(MediaType.EPUB, Family.ZIP, "an EPUB book", ("epub",), f"{_READERS}.office:read_epub"),
    Format(MediaType.ODT, Family.ZIP, "an OpenDocument text (.odt)", ("odt", "ott"), _ODF, shared_reader=True),
    Format(MediaType.ODS, Family.ZIP, "an OpenDocument spreadsheet (.ods)", ("ods", "ots"), _ODF, shared_reader=True),
    Format(MediaType.ODP, Family.ZIP, "an OpenDocument presentation (.odp)", ("odp", "otp"), _ODF, shared_reader=True),
    Format(
        MediaType.RTF, Family.OTHER, "a Rich Text document (.rtf)", ("rtf",),
        f"{_READERS}.rtf:read_rtf", marks=("{\\rtf",),
    ),
    # the first match decides: a document or presentation may hold a workbook's streams too
    Format(
        MediaType.DOC, Family.OLE, "a legacy Word document (.doc)", ("doc", "dot"),
        _OFFICE, shared_reader=True, marks=("WordDocument",), current=MediaType.DOCX,
    ),
    Format(
        MediaType.PPT, Family.OLE, "a legacy PowerPoint presentation (.ppt)", ("ppt", "pps", "pot"),
        _OFFICE, shared_reader=True, marks=("PowerPoint Document",), current=MediaType.PPTX,
    ),
    Format(
        MediaType.XLS, Family.OLE, "a legacy Excel workbook (.xls)", ("xls", "xlt"),
        _OFFICE, shared_reader=True, marks=("Workbook", "Book"), current=MediaType.XLSX,
    ),
    # `ingestion.sniff` recognises e-mail, HTML and feeds by their first lines, other text by the file's name
    Format(
        MediaType.EMAIL, Family.TEXT, "an e-mail message", ("eml", "mht", "mhtml"), f"{_READERS}.email:read_email"
    ),
    Format(MediaType.HTML, Family.TEXT, "an HTML page", ("html", "htm", "xhtml"), f"{_READERS}.html:read_html"),
    Format(MediaType.MARKDOWN, Family.TEXT, "plain text", ("md", "markdown"), f"{_READERS}.markdown:read_markdown"),
    Format(MediaType.CSV, Family.TEXT, "plain text", ("csv", "tsv"), f"{_READERS}.csv:read_csv"),
    Format(MediaType.FEED, Family.TEXT, "a news feed", ("rss", "atom"), f"{_READERS}.feed:read_feed"),
    Format(MediaType.CODE, Family.TEXT, "plain text", tuple(_CODE.split()), f"{_READERS}.text:read_code"),
    Format(MediaType.TEXT, Family.TEXT, "plain text", ("txt", "text", "log"), f"{_READERS}.text:read_text"),
)  # fmt: skip

FORMATS: Mapping[MediaType, Format] = {row.media_type: row for row in _ROWS}
"""The formats by media type, in the order in which their marks are compared."""


def formats_of(family: Family) -> tuple[Format, ...]:
    """The formats of a family, in the order in which their marks are compared."""
    return tuple(row for row in _ROWS if row.family is family)
