"""Reads office documents and books through docling: OOXML (ECMA-376), OpenDocument and EPUB, also encrypted OOXML."""

from pathlib import Path

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml.ElementTree import ParseError, fromstring  # type: ignore[import-untyped]
from msoffcrypto import OfficeFile
from msoffcrypto.exceptions import DecryptionError, InvalidKeyError
from msoffcrypto.format.ooxml import OOXMLFile

from ingestion.builder import TextBuilder
from ingestion.container import opened
from ingestion.errors import Encrypted
from ingestion.readers.docling_tree import append_footnotes, append_tree, convert
from ingestion.types import Extraction, ExtractionLimits, MediaType


def read_office(path: Path, limits: ExtractionLimits, media_type: MediaType) -> Extraction:
    """Read a Word document, a presentation or a workbook; its container has been checked.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    builder = TextBuilder(limits)
    append_tree(convert(path.read_bytes(), media_type), builder)
    return builder.build(media_type, declared=_declared(path, "docProps/core.xml"))


_DC_TITLE = ".//{http://purl.org/dc/elements/1.1/}title"
_MANIFEST = "META-INF/manifest.xml"
_ENCRYPTION = b"encryption-data"  # an element of the manifest, ODF 1.4 part 2 §4.5


def read_odf(path: Path, limits: ExtractionLimits, media_type: MediaType) -> Extraction:
    """Read a text, a spreadsheet or a presentation; its container has been checked.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    with opened(path) as archive:
        if _MANIFEST in archive.namelist() and _ENCRYPTION in archive.read(_MANIFEST):
            raise Encrypted("We cannot open OpenDocument files behind a password; save it without one.")
    builder = TextBuilder(limits)
    document = convert(path.read_bytes(), media_type)
    append_tree(document, builder)
    append_footnotes(document, builder)
    return builder.build(media_type, declared=_declared(path, "meta.xml"))


def _declared(path: Path, member: str) -> str | None:
    """The `dc:title` in a container's properties (ECMA-376 part 2 §11.1, ODF 1.4 part 3 §4.3.2.8), if they have one."""
    with opened(path) as archive:
        if member not in archive.namelist():
            return None
        try:
            title: str | None = fromstring(archive.read(member)).findtext(_DC_TITLE)
        except (ParseError, DefusedXmlException):  # damaged properties do not make the text unreadable
            return None
        return title


def read_epub(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a book; its container has been checked. It has no pages: those depend on the screen.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    builder = TextBuilder(limits)
    append_tree(convert(path.read_bytes(), MediaType.EPUB), builder)
    return builder.build(MediaType.EPUB, title=_title(path))


def _title(path: Path) -> str | None:
    """The book's first `dc:title` (EPUB 3.3 §5.5.3.1.2), `None` where the package document names none."""
    with opened(path) as archive:
        root = fromstring(archive.read("META-INF/container.xml")).find(".//{*}rootfile")
        package = fromstring(archive.read(root.get("full-path", ""))) if root is not None else None
    return package.findtext(_DC_TITLE) if package is not None else None


_OLE = b"\xd0\xcf\x11\xe0"  # an Office document without encryption is a zip file, or a legacy one


def is_encrypted(path: Path) -> bool:
    """Whether the Office document at `path` is behind a password."""
    with path.open("rb") as file:
        return file.read(len(_OLE)) == _OLE and bool(OfficeFile(file).is_encrypted())


def write_decrypted(path: Path, to: Path, *, password: str) -> None:
    """Decrypts the document into the new file `to`.

    Raises:
        Encrypted: The password is wrong, or the encryption is not supported.
    """
    with path.open("rb") as file, to.open("xb") as out:
        document = OfficeFile(file)
        try:
            if not password:
                raise InvalidKeyError
            if isinstance(document, OOXMLFile):
                document.load_key(password=password, verify_password=True)
            else:  # these verify it always
                document.load_key(password=password)
            document.decrypt(out)
        except InvalidKeyError:
            raise Encrypted("The password is wrong; the document stays closed.") from None
        except DecryptionError:
            raise Encrypted("The document is encrypted in a way we cannot open; remove the password.") from None
