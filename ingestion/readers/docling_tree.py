"""Docling's typed document tree as blocks of canonical text, in reading order.

The formats read through it (DOCX, PPTX, XLSX, ODF, HTML, EPUB) need no model. It imports torch all
the same (seconds, a few hundred MB), so this module is loaded in the parser process alone.
"""

import logging
from collections.abc import Iterator, Sequence
from io import BytesIO

from docling.backend.abstract_backend import DeclarativeDocumentBackend
from docling.backend.epub_backend import EpubDocumentBackend
from docling.backend.html_backend import HTMLDocumentBackend
from docling.backend.msexcel_backend import MsExcelDocumentBackend
from docling.backend.mspowerpoint_backend import MsPowerpointDocumentBackend
from docling.backend.msword_backend import MsWordDocumentBackend
from docling.backend.opendocument_backend import OdpDocumentBackend, OdsDocumentBackend, OdtDocumentBackend
from docling.datamodel.backend_options import HTMLBackendOptions, MsExcelBackendOptions
from docling.datamodel.base_models import InputFormat
from docling.datamodel.document import InputDocument
from docling_core.types.doc.common.content_layer import ContentLayer
from docling_core.types.doc.common.formatting import Script
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.items.code import CodeItem
from docling_core.types.doc.items.group import GroupItem, InlineGroup
from docling_core.types.doc.items.node import DocItem, NodeItem
from docling_core.types.doc.items.picture.picture import PictureItem
from docling_core.types.doc.items.table.table import TableItem
from docling_core.types.doc.items.table.table_data import RichTableCell, TableData
from docling_core.types.doc.items.text import ListItem, SectionHeaderItem, TextItem, TitleItem
from docling_core.types.doc.labels import DocItemLabel, GroupLabel

from ingestion.builder import TextBuilder, one_line
from ingestion.column_names import holds_data
from ingestion.errors import Malformed
from ingestion.readers.sheet_cells import placed
from ingestion.readers.sheet_grids import Grid, sheet_grids
from ingestion.readers.table_rows import append_rows, append_table
from ingestion.types import BlockKind, MediaType

_LAYERS = frozenset({ContentLayer.BODY, ContentLayer.NOTES})
_BACKENDS: dict[MediaType, tuple[InputFormat, type[DeclarativeDocumentBackend]]] = {
    MediaType.DOCX: (InputFormat.DOCX, MsWordDocumentBackend),
    MediaType.PPTX: (InputFormat.PPTX, MsPowerpointDocumentBackend),
    MediaType.XLSX: (InputFormat.XLSX, MsExcelDocumentBackend),
    MediaType.ODT: (InputFormat.ODT, OdtDocumentBackend),
    MediaType.ODP: (InputFormat.ODP, OdpDocumentBackend),
    MediaType.ODS: (InputFormat.ODS, OdsDocumentBackend),
    MediaType.EPUB: (InputFormat.EPUB, EpubDocumentBackend),
    MediaType.HTML: (InputFormat.HTML, HTMLDocumentBackend),
}
_PAGES = frozenset({GroupLabel.CHAPTER, GroupLabel.SLIDE})
_ODS_SHEET = "sheet: "  # how docling names the sections that it makes of an OpenDocument spreadsheet's sheets
_BOXES = {DocItemLabel.CHECKBOX_SELECTED: "[x]", DocItemLabel.CHECKBOX_UNSELECTED: "[ ]"}
_CLOSERS = tuple(",.;:!?)]}%’”…、。，；：！？）」』")
_OPENERS = tuple("([{“‘„（「『")


def convert(data: bytes, media_type: MediaType) -> DoclingDocument:
    """Docling's tree of a file; nothing is fetched, neither from the network nor from the disk.

    The backend is given, not detected by docling, which would unpack a container that it
    does not recognise and read its content.

    Raises:
        Malformed: Docling cannot read it.
    """
    logging.getLogger("docling").setLevel(logging.CRITICAL)  # its warnings quote the document
    kind, backend, options = _backend(media_type)
    source = InputDocument(
        path_or_stream=BytesIO(data), format=kind, backend=backend, backend_options=options, filename="document"
    )
    if not source.valid:
        raise Malformed("The file is damaged, or not what it claims to be.")
    opened = source._backend  # noqa: SLF001 - docling's own pipelines take it so; there is no public name
    assert isinstance(opened, DeclarativeDocumentBackend), "these formats describe their own structure"
    try:
        return opened.convert()
    finally:
        opened.unload()  # type: ignore[no-untyped-call]


def _backend(
    media_type: MediaType,
) -> tuple[InputFormat, type[DeclarativeDocumentBackend], HTMLBackendOptions | MsExcelBackendOptions | None]:
    assert media_type in _BACKENDS, f"{media_type} has a reader of its own"
    options: HTMLBackendOptions | MsExcelBackendOptions | None = None
    if media_type is MediaType.XLSX:
        options = MsExcelBackendOptions(treat_singleton_as_text=True)
    elif media_type is MediaType.HTML:
        # Otherwise all text before the first heading counts as page furniture and is lost.
        options = HTMLBackendOptions(infer_furniture=False)
    return *_BACKENDS[media_type], options


def page_title(document: DoclingDocument) -> str | None:
    """The title outside the text (HTML's `<title>`), where there is one."""
    for item in document.texts:
        if isinstance(item, TitleItem) and item.content_layer is ContentLayer.FURNITURE:
            return str(item.text)
    return None


def append_tree(document: DoclingDocument, builder: TextBuilder) -> None:
    """Append every block of the tree: body text and notes, not running headers and footers.

    Slides and sheets are pages; a sheet's name is its heading. The tables of a sheet have names of columns where their
    content says so, those of other documents where docling does and no data is in the row.

    Raises:
        LimitExceeded: More text or pages than the limits allow.
    """
    pages = 0
    seen: set[str] = set()
    grids: dict[str, Grid] = {}  # of the tables of sheets
    waiting: list[NodeItem] = [document.body]
    while waiting:  # not recursive: the tree of a hostile file may be very deep
        node = waiting.pop()
        if node.self_ref in seen:  # a caption, which is read with its picture
            continue
        seen.add(node.self_ref)
        if isinstance(node, GroupItem) and node.parent == document.body.get_ref():
            sheet = _sheet(node)
            if sheet or node.label in _PAGES:
                pages += 1
                builder.begin_page(pages)
                builder.close_headings()
            if sheet:
                builder.append(BlockKind.HEADING, sheet, level=1)
                grids |= _sheet_tables(document, node)
        if node.self_ref in grids and node.content_layer in _LAYERS:
            append_table(grids[node.self_ref], builder)
            behind = _notes(document, node) if isinstance(node, TableItem) else _children(document, node)
            waiting.extend(reversed(behind))
            continue
        children = _append(document, node, builder) if node.content_layer in _LAYERS else _children(document, node)
        waiting.extend(reversed(children))


def _sheet(group: GroupItem) -> str:
    """The name of the sheet that a group is; empty where it is none."""
    if group.label is GroupLabel.SHEET:
        return group.name
    is_ods = group.label is GroupLabel.SECTION and group.name.startswith(_ODS_SHEET)
    return group.name.removeprefix(_ODS_SHEET) if is_ods else ""


def append_footnotes(document: DoclingDocument, builder: TextBuilder) -> None:
    """Append the notes that docling's OpenDocument backends file under page furniture: they are at the end."""
    for item in document.texts:
        if item.label is DocItemLabel.FOOTNOTE and item.content_layer is ContentLayer.FURNITURE:
            builder.append(BlockKind.PARAGRAPH, item.text)


def _append(document: DoclingDocument, node: NodeItem, builder: TextBuilder) -> list[NodeItem]:
    """Append the node's own text; returns the children that are left to visit."""
    children = _children(document, node)
    if isinstance(node, InlineGroup):
        builder.append(BlockKind.PARAGRAPH, _joined(_leaves(document, node)))
        return []
    if isinstance(node, TableItem):
        _append_rows(document, node.data, builder)
        return _notes(document, node)
    if isinstance(node, PictureItem):
        chart = node.meta.tabular_chart if node.meta else None
        if chart:
            _append_rows(document, chart.chart_data, builder)
        return [*(ref.resolve(document) for ref in node.captions), *children]
    if not isinstance(node, TextItem):
        return children
    text = node.text
    if not text.strip() and children and isinstance(children[0], InlineGroup):
        text = _joined(_leaves(document, children.pop(0)))
    if isinstance(node, TitleItem):
        builder.append(BlockKind.HEADING, text, level=1)
    elif isinstance(node, SectionHeaderItem):
        builder.append(BlockKind.HEADING, text, level=node.level + 1)
    elif isinstance(node, ListItem):
        builder.append(BlockKind.LIST_ITEM, f"{node.marker} {text}" if node.enumerated and text.strip() else text)
    elif node.label in _BOXES:
        builder.append(BlockKind.LIST_ITEM, f"{_BOXES[node.label]} {text}")
    elif isinstance(node, CodeItem):
        builder.append(BlockKind.CODE, text)
    else:
        builder.append(BlockKind.CAPTION if node.label is DocItemLabel.CAPTION else BlockKind.PARAGRAPH, text)
    return children


def _append_rows(document: DoclingDocument, table: TableData, builder: TextBuilder) -> None:
    rows = _grid(document, table)
    marked = len(rows) > 1 and any(cell.column_header for cell in table.table_cells if not cell.start_row_offset_idx)
    named = marked and not holds_data(rows[0], rows[1:])
    append_rows(rows[named:], builder, names=rows[0] if named else None)


def _grid(document: DoclingDocument, table: TableData) -> Grid:
    """The texts of a table's cells; a cell that spans columns is in the first of them."""
    grid = table.grid  # computed on every access: once
    return [
        ["" if at and cell is cells[at - 1] else _cell_text(document, cell) for at, cell in enumerate(cells)]
        for cells in grid
    ]


def _sheet_tables(document: DoclingDocument, sheet: GroupItem) -> dict[str, Grid]:
    """The rows of a sheet's tables and lone cells by reference; none where one is read as part of another."""
    items = _children(document, sheet)
    texts: dict[str, Grid] = {}
    for item in items:
        box = item.prov[0].bbox if isinstance(item, DocItem) and item.prov else None
        if isinstance(item, TableItem):
            grid = _grid(document, item.data)
            texts[item.self_ref] = placed(grid, top=int(box.t), left=int(box.l)) if box else grid
        elif isinstance(item, TextItem) and box and item.label is not DocItemLabel.CAPTION:
            texts[item.self_ref] = placed([[item.text]], top=int(box.t), left=int(box.l))
    return texts | sheet_grids(items, texts)


def _notes(document: DoclingDocument, node: TableItem) -> list[NodeItem]:
    """The captions and footnotes of a table."""
    return [ref.resolve(document) for ref in (*node.captions, *node.footnotes)]


def _cell_text(document: DoclingDocument, cell: object) -> str:
    if isinstance(cell, RichTableCell):
        return _joined(_leaves(document, cell.ref.resolve(document))) or str(cell.text)
    return str(getattr(cell, "text", ""))


def _leaves(document: DoclingDocument, root: NodeItem) -> Iterator[tuple[str, bool]]:
    """Every text under `root` in order, and whether it is a subscript or superscript."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, TableItem):
            for cells in node.data.grid:
                yield from ((one_line(cell.text), False) for cell in cells)
            continue
        if isinstance(node, TextItem) and node.text.strip():
            if node.label in _BOXES:
                yield _BOXES[node.label], False
            yield node.text.strip(), node.formatting is not None and node.formatting.script is not Script.BASELINE
        waiting.extend(reversed(_children(document, node)))


def _joined(pieces: Iterator[tuple[str, bool]]) -> str:
    """Runs of inline text as one; docling drops the blanks between them, so they are put back by rule.

    No blank before closing punctuation, after opening punctuation, before a subscript or
    superscript, nor between one and the capital or digit that goes on (H2O).
    """
    text, after_script = "", False
    for piece, script in pieces:
        glued = script or piece.startswith(_CLOSERS) or text.endswith(_OPENERS)
        glued = glued or (after_script and (piece[0].isupper() or piece[0].isdigit()))
        text += piece if glued or not text else " " + piece
        after_script = script
    return text


def _children(document: DoclingDocument, node: NodeItem) -> list[NodeItem]:
    refs: Sequence[object] = node.children
    return [ref.resolve(document) for ref in refs]  # type: ignore[attr-defined]
