"""Reports and the raw ledger as files: CSV and NDJSON, streamed, where the `Accept` header asks for one."""

import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, TypeVar

import anyio
from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.event_stream import until_first
from app.errors import InvalidRequest
from app.usage.ledger.ledger import Ledger
from app.usage.reports.csv_text import Cell, csv_text
from app.usage.reports.documents_report import MOST, DocumentsQuery
from app.usage.reports.reports import ReportQuery
from app.usage.reports.tables import MONEY, Page, Table
from app.usage.rollups.buckets import LIMITS

Format: TypeAlias = Literal["csv", "ndjson"]
Query = TypeVar("Query", ReportQuery, DocumentsQuery)

_FORMATS: dict[str, Format | None] = {
    "text/csv": "csv",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/json": None,
}
_MEDIA = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}

EXPORTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "JSON; or the whole range as a file, streamed, for `Accept: text/csv` (RFC 4180) or "
        "`Accept: application/x-ndjson`.",
        "content": {"text/csv": {"schema": {"type": "string"}}, "application/x-ndjson": {"schema": {"type": "string"}}},
    }
}
"""The `responses` of a route that exports, beside its JSON."""


class ExportStream(StreamingResponse):
    """A file that is made while it is sent, and no further once its reader has left.

    What fails midway cuts the connection: a file that ends as it should is whole.
    """

    def __init__(
        self, pieces: Generator[bytes, None, None], form: Format, *, subject: str, start: int, end: int
    ) -> None:
        """Send `pieces`, each made in a thread once the one before was taken; the first is made at once.

        Args:
            pieces: The file.
            form: What it is.
            subject: What it is about, for its name.
            start: Of its range, Unix seconds; so is `end`.
            end: For its name too.

        Raises:
            AppError: As the first piece, while that can still be answered.
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
        with self._turn:  # the last piece may still be made, for nobody
            self._pieces.close()


def wanted(request: Request) -> Format | None:
    """Which file the client prefers to JSON, None for JSON (RFC 9110, 12.5.1; the first named of equals)."""
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


def exported(request: Request, ledger: Ledger, table: Table, report: Callable[[Query], Page], query: Query) -> Response:
    """A page of the report in JSON, or all of it as a file if the client asked for one.

    All pages of a file are of one moment: it ends with the second in which it was asked for, if not before.

    Raises:
        InvalidRequest: As the report; and a page or a limit, which a file has not.
    """
    form = wanted(request)
    if form is None:
        return JSONResponse(report(query))
    for param in ("limit", "page"):
        if param in request.query_params:
            raise InvalidRequest("A file has the whole range: leave limit and page out.", param=param)
    end = closed_second(ledger, query.start, query.end)
    pages: Iterator[Page] = _pages(report, replace(query, end=end, **_longest(query)))
    if form == "csv":
        pieces = csv_text(table.columns, _cells(table, pages), numbers=MONEY)
    else:
        pieces = (ndjson(rows) for rows in map(table.rows, pages))
    return ExportStream(pieces, form, subject=table.name, start=query.start, end=end)


def ndjson(rows: Iterable[object]) -> bytes:
    """One line of JSON a row (github.com/ndjson/ndjson-spec)."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def closed_second(ledger: Ledger, start: int, end: int | None) -> int:
    """Where a file of `[start, end)` ends, Unix seconds: nothing before it will change.

    That is `end`, or else when the running second is over, for which it waits.

    Raises:
        StoreUnavailable: As `Ledger.moment`.
    """
    second = int(time.time()) + 1
    if start >= second:  # nothing is there yet
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


def _cells(table: Table, pages: Iterable[Page]) -> Iterator[Iterator[list[Cell]]]:
    return (map(table.cells, table.rows(page)) for page in pages)


def _longest(query: ReportQuery | DocumentsQuery) -> dict[str, Any]:
    """What asks for the longest pages; a width that there is not is the report's to refuse."""
    if isinstance(query, DocumentsQuery):
        return {"limit": MOST}
    return {"limit": LIMITS[query.bucket_width][1]} if query.bucket_width in LIMITS else {}


def _day(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y%m%d")
