"""Reports and the raw ledger as streamed files, CSV or NDJSON, by content negotiation (`Accept`)."""

import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, TypeVar

import anyio
from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.event_stream import until_first
from app.api.schemas.shape import ResponseBody
from app.errors import InvalidRequest
from app.usage.ledger.ledger import Ledger
from app.usage.reports.csv_text import Cell, csv_text
from app.usage.reports.documents_report import MOST, DocumentsQuery
from app.usage.reports.reports import ReportQuery
from app.usage.reports.tables import MONEY, Page, ReportTable
from app.usage.rollups.buckets import LIMITS

Format: TypeAlias = Literal["csv", "ndjson"]
Query = TypeVar("Query", ReportQuery, DocumentsQuery)

_FORMATS: dict[str, Format | None] = {
    "text/csv": "csv",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/json": None,
}
_LONGEST_BUCKET_S = 62 * 86_400  # two months: the calendar month before one, whole
_LIST_PAGE = 500
_MEDIA = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}

EXPORTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "JSON; with `Accept: text/csv` (RFC 4180) or `Accept: application/x-ndjson` a streamed file of "
        "the whole range.",
        "content": {"text/csv": {"schema": {"type": "string"}}, "application/x-ndjson": {"schema": {"type": "string"}}},
    }
}
"""The `responses` of a route whose report can also be exported as a file."""


class ExportStream(StreamingResponse):
    """A file that is generated while it is sent; generation stops when the client disconnects.

    A failure midway cuts the connection, so that a file that ends properly is complete.
    """

    def __init__(
        self, pieces: Generator[bytes, None, None], form: Format, *, subject: str, start: int, end: int
    ) -> None:
        """Send `pieces`, each generated in a thread after the one before was sent; the first is generated at once.

        Args:
            pieces: The content of the file.
            form: The file format.
            subject: The subject, for the file name.
            start: Start of the range in Unix seconds, for the file name.
            end: End of the range in Unix seconds, for the file name.

        Raises:
            AppError: The first piece failed, while an error status can still be sent.
        """
        self._pieces, self._turn = pieces, threading.Lock()
        first = next(pieces, b"")
        super().__init__(
            self._following(first),
            media_type=_MEDIA[form],
            headers={
                "Content-Disposition": f'attachment; filename="footnote-{subject}-{_day(start)}-{_day(end)}.{form}"',
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send until the pieces end or the client leaves."""
        try:
            await until_first(self.stream_response(send), self.listen_for_disconnect(receive))
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._close)

    async def _following(self, first: bytes) -> AsyncIterator[bytes]:
        yield first
        while (piece := await anyio.to_thread.run_sync(self._next)) is not None:
            yield piece

    def _next(self) -> bytes | None:
        with self._turn:
            return next(self._pieces, None)

    def _close(self) -> None:
        with self._turn:  # waits for a piece that is being generated
            self._pieces.close()


def wanted(request: Request) -> Format | None:
    """The file format that the client prefers, None for JSON (RFC 9110, section 12.5.1; the first of equals)."""
    best: tuple[float, Format | None] = (0.0, None)
    for part in request.headers.get("accept", "").split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((piece[2:] for piece in parameters if piece.lower().startswith("q=")), "1")
        try:
            quality = float(weight)
        except ValueError:
            quality = 0.0
        if media.lower() in _FORMATS and quality > best[0]:
            best = quality, _FORMATS[media.lower()]
    return best[1]


def exported(
    request: Request, ledger: Ledger, table: ReportTable, report: Callable[[Query], Page], query: Query
) -> Response:
    """A page of the report in JSON, or the whole report as a file when the client wants one.

    All pages of a file show the same point in time: the range ends with the second of the request, or earlier.

    Raises:
        InvalidRequest: The report refuses the query, or a file is wanted with `page` or `limit`.
    """
    form = wanted(request)
    if form is None:
        return JSONResponse(report(query))
    refuse_pages(request)
    end = closed_second(ledger, query.start, query.end)
    start = query.start
    if isinstance(query, ReportQuery):
        start = _first_start(query, ledger.first_second(query.tenant_id), end)
    pages: Iterator[Page] = _pages(report, replace(query, start=start, end=end, **_longest(query)))
    return _file(form, table, pages, start=query.start, end=end, numbers=MONEY)


def exported_pages(
    request: Request,
    table: ReportTable,
    page: Callable[[], Page],
    pages: Callable[[], Iterator[Page]],
    *,
    start: int,
    end: int,
    numbers: Collection[str],
) -> Response:
    """`page` in JSON, or all `pages` as a file when the client wants one.

    Args:
        request: The request.
        table: The columns of the file.
        page: Reads the page that JSON has.
        pages: Reads the pages of the file.
        start: Start of the range in Unix seconds, for the file name.
        end: End of the range in Unix seconds, for the file name.
        numbers: Columns whose texts are numbers.

    Raises:
        InvalidRequest: A file is wanted with `page` or `limit`.
    """
    form = wanted(request)
    if form is None:
        return JSONResponse(page())
    refuse_pages(request)
    return _file(form, table, pages(), start=start, end=end, numbers=numbers)


def exported_list(
    request: Request,
    table: ReportTable,
    read: Callable[[int, str | None], tuple[Sequence[ResponseBody], str | None]],
    *,
    limit: int,
    cursor: str | None,
    end: int,
) -> Response:
    """A page of a list in JSON, or the whole list as a file when the client wants one.

    Args:
        request: The request.
        table: The columns of the file.
        read: Reads at most so many items from a cursor on, and the cursor of the next page (None: no more).
        limit: Most items of the page that JSON has.
        cursor: Where that page begins.
        end: The present in Unix seconds, for the file name.

    Raises:
        InvalidRequest: A file is wanted with `limit` or `cursor`, or the cursor is not valid.
    """

    def page(limit: int, cursor: str | None) -> Page:
        items, following = read(limit, cursor)
        data = [item.model_dump(mode="json") for item in items]
        return {"object": "list", "data": data, "has_more": following is not None, "next_cursor": following}

    def every() -> Iterator[Page]:
        found = page(_LIST_PAGE, None)
        yield found
        while found["next_cursor"] is not None:
            found = page(_LIST_PAGE, found["next_cursor"])
            yield found

    return exported_pages(request, table, lambda: page(limit, cursor), every, start=0, end=end, numbers=())


def refuse_pages(request: Request) -> None:
    """Check that a file is wanted as a whole.

    Raises:
        InvalidRequest: The request names a page of it.
    """
    for param in ("limit", "page", "cursor"):
        if param in request.query_params:
            raise InvalidRequest(f"A file has the whole range; leave out {param}.", param=param)


def _file(
    form: Format, table: ReportTable, pages: Iterable[Page], *, start: int, end: int, numbers: Collection[str]
) -> ExportStream:
    """All pages as one file of the format `form`."""
    if form == "csv":
        pieces = csv_text(table.columns, _cells(table, pages), numbers=numbers)
    else:
        pieces = (ndjson(rows) for rows in map(table.rows, pages))
    return ExportStream(pieces, form, subject=table.name, start=start, end=end)


def ndjson(rows: Iterable[object]) -> bytes:
    """One line of JSON for each row (github.com/ndjson/ndjson-spec)."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def _first_start(query: ReportQuery, first: int | None, end: int) -> int:
    """The start of the range from which pages are read: the years before a tenant's first call have no rows.

    A bucket or more lies between it and that call, so that no bucket with rows is cut.
    """
    first = end if first is None else first
    return max(query.start, min(first - _LONGEST_BUCKET_S, end - 1))


def closed_second(ledger: Ledger, start: int, end: int | None) -> int:
    """The end of a file of `[start, end)` in Unix seconds, before which the ledger will not change.

    That is `end`, or the end of the current second, for which it waits.

    Raises:
        StoreUnavailable: As `Ledger.moment`.
    """
    second = int(ledger.seconds()) + 1
    if start >= second:  # the range is in the future
        return start + 1 if end is None else end
    closed = second if end is None else min(end, second)
    while (left := closed * 1_000_000 - ledger.moment()) > 0:
        time.sleep(left / 1_000_000)
    return closed


def _pages(report: Callable[[Query], Page], query: Query) -> Iterator[Page]:
    token: str | None = None
    while True:
        page: Page = report(replace(query, page=token))
        yield page
        token = page["next_page"]
        if token is None:
            return


def _cells(table: ReportTable, pages: Iterable[Page]) -> Iterator[Iterator[list[Cell]]]:
    return (map(table.cells, table.rows(page)) for page in pages)


def _longest(query: ReportQuery | DocumentsQuery) -> dict[str, Any]:
    """The largest page size of a query, as a keyword argument; the report refuses an unknown bucket width."""
    if isinstance(query, DocumentsQuery):
        return {"limit": MOST}
    return {"limit": LIMITS[query.bucket_width][1]} if query.bucket_width in LIMITS else {}


def _day(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y%m%d")
