"""A small EPUB 3 book."""

from tests.ingestion.zip_file import zip_bytes

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
    '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
    '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>On Ducks</dc:title></metadata>'
    '<manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="b" href="b%20b.xhtml" media-type="application/xhtml+xml"/></manifest>'
    '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
)


def chapter(title: str, text: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>{title}</h1><p>{text}</p></body></html>'


def book(*, package: str = PACKAGE, mimetype_first: bool = True) -> bytes:
    mimetype = {"mimetype": "application/epub+zip"}
    rest = {
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": package,
        "OPS/a.xhtml": chapter("Last", "The <em>end</em>."),
        "OPS/b b.xhtml": chapter("First", "Es war einmal 🦆."),
    }
    return zip_bytes(mimetype | rest if mimetype_first else rest | mimetype)
