"""Routes of tables: the same questions asked of many documents, each answer with its footnotes, as JSON and CSV."""

import time
from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.answer_tables.sheet import sheet
from app.api.dependencies import CorpusDep, Cursor, HistoryDep, Limit, PrincipalDep, SettingsDep, scope_for
from app.api.exports import ExportStream, refuse_pages, wanted
from app.api.schemas.bounds import Id
from app.api.schemas.shape import Page, problems
from app.api.schemas.tables import (
    AnswerTableBody,
    AnswerTablePage,
    NewTable,
    TableDeletedBody,
    TableRowBody,
    TableUsageBody,
)
from app.db.answer_tables import TableRow
from app.server.state import History
from app.types import Principal

_ROWS_AT_ONCE = 100
_FILE = ".csv"  # behind the id of a table

router = APIRouter(tags=["tables"])


@router.post("/v1/tables", status_code=201, summary="Ask many documents", responses=problems(404, 409, 422, 503))
def create_table(body: NewTable, corpus: CorpusDep, history: HistoryDep, principal: PrincipalDep) -> AnswerTableBody:
    """Ask each question of each document of the scope, in the background; the key that makes the table pays.

    `document_ids` give the rows in their order, `collection_ids` and `filter` by name. A cell is a question whose
    scope is its document, with its own footnotes; one that fails leaves the others alone.
    """
    scope = scope_for(
        corpus,
        principal,
        collection_ids=body.collection_ids,
        document_ids=body.document_ids,
        raw_filter=body.filter,
    )
    return AnswerTableBody.of(history.tables.create(principal, body.columns, scope, length=body.length))


@router.get("/v1/tables", summary="List tables", responses=problems(422, 503))
def list_tables(
    history: HistoryDep, principal: PrincipalDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[AnswerTableBody]:
    """The caller's tables without their rows, newest first; for administrators those of all users."""
    found, next_cursor = history.tables.list(principal, limit=limit, cursor=cursor)
    return Page(data=list(map(AnswerTableBody.of, found)), has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get(
    "/v1/tables/{table_id}",
    response_model=AnswerTablePage,
    summary="Read a table",
    responses={
        200: {
            "description": "JSON; with `.csv` behind the id, or `Accept: text/csv`, a streamed file (RFC 4180).",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        },
        **problems(404, 422, 503),
    },
)
def read_table(
    table_id: Id,
    request: Request,
    history: HistoryDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> AnswerTablePage | Response:
    """Its progress, its bill, and a page of its rows: `limit` and `cursor` are of the rows.

    The file has all rows, one for each document; for each question the answer, its state, and the page and the quote of
    its first footnote. Cells that wait are empty and say so. A text that a spreadsheet could run as a formula has an
    apostrophe before it.
    """
    stem = table_id.removesuffix(_FILE)
    table, bill = history.tables.get(stem, principal=principal)
    if stem != table_id or wanted(request) == "csv":
        refuse_pages(request)
        pieces = sheet(table, _pages(history, stem, principal))
        return ExportStream(pieces, "csv", subject="table", start=int(table.created_at), end=int(time.time()))
    found, next_cursor = history.tables.rows(stem, principal=principal, limit=limit, cursor=cursor)
    rows = Page[TableRowBody](
        data=[TableRowBody.of(row, settings.currency) for row in found],
        has_more=next_cursor is not None,
        next_cursor=next_cursor,
    )
    return AnswerTablePage.with_rows(table, TableUsageBody.of(bill, settings.currency), rows)


@router.post("/v1/tables/{table_id}/resume", summary="Go on with a table", responses=problems(404, 503))
def resume_table(table_id: Id, history: HistoryDep, principal: PrincipalDep) -> AnswerTableBody:
    """Go on with a table that is stopped, and ask the cells again that failed; nothing else is asked again."""
    return AnswerTableBody.of(history.tables.resume(table_id, principal=principal))


@router.delete("/v1/tables/{table_id}", summary="Delete a table", responses=problems(404, 503))
def delete_table(table_id: Id, history: HistoryDep, principal: PrincipalDep) -> TableDeletedBody:
    """Cancel it, and delete it for good with its answers; the ledger keeps what it cost."""
    history.tables.delete(table_id, principal=principal)
    return TableDeletedBody(id=table_id)


def _pages(history: History, table_id: str, principal: Principal) -> Iterator[tuple[TableRow, ...]]:
    cursor: str | None = None
    while True:
        rows, cursor = history.tables.rows(table_id, principal=principal, limit=_ROWS_AT_ONCE, cursor=cursor)
        yield rows
        if cursor is None:
            return
