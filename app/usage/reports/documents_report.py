"""The documents report: tokens and cost of embedding and reading each document, and how often it is cited."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.db.paging import cut, decode_cursor
from app.db.tables.documents import document, document_version
from app.db.tables.ledger import answer_citation
from app.db.tables.rollups import COST_UNIT
from app.errors import InvalidRequest
from app.usage.reports.document_shares import document_lines
from app.usage.rollups.buckets import LATEST
from app.usage.rollups.sums import decimal, high, low

ORDERS = ("cost", "num_retrieved", "num_cited", "context_tokens", "ingest_tokens")
"""The fields that documents can be sorted by."""

DELETED = "(deleted)"
"""The name of a deleted document."""

MOST = 1000
"""The maximum number of documents on a page."""

_READ = ("num_retrieved", "context_tokens", "context_high", "context_low", "context_priced")
_EMBEDDED = ("num_ingests", "ingest_tokens", "ingest_high", "ingest_low", "ingest_priced")
_CITED = ("num_cited", "num_citations")
_NUMBERS = (*_READ, *_EMBEDDED, *_CITED)
_PLACE = ("first", "second", "third")  # the columns that documents are sorted by, before their ids


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsQuery:
    """A request for one page of the report over `[start, end)`, Unix seconds; `end` None is now.

    Documents are sorted by `order_by`, descending unless `ascending`, and those of one cost by their tokens: without
    prices the documents that were read come before those that failed. `page` is the `next_page` of the previous page,
    which keeps the end of its range. `document_ids` None is all. `cited` selects documents that an answer in the range
    cites (true), that none cites (false), or all (None).
    """

    tenant_id: str
    start: int
    end: int | None = None
    order_by: str = "cost"
    ascending: bool = False
    document_ids: tuple[str, ...] | None = None
    cited: bool | None = None
    limit: int = 100
    page: str | None = None


def document_results(
    connection: sa.Connection, query: DocumentsQuery, *, as_of: int, currency: str
) -> dict[str, object]:
    """One page of documents; unused documents have zeros.

    Raises:
        InvalidRequest: The range, order, limit or page is not valid; `param` names it.
    """
    if not 0 <= query.start <= LATEST:
        raise InvalidRequest("start_time must be Unix seconds.", param="start_time")
    if query.order_by not in ORDERS:
        raise InvalidRequest(f"order_by must be one of {', '.join(ORDERS)}.", param="order_by")
    if not 1 <= query.limit <= MOST:
        raise InvalidRequest(f"limit must be between 1 and {MOST}.", param="limit")
    end, after = _position(query.page)
    if end is None:
        end = max(as_of, query.start) + 1 if query.end is None else query.end
    if not query.start < end <= LATEST:
        raise InvalidRequest("end_time must be after start_time.", param="end_time")

    sums = _sums(query, query.start * 1_000_000, end * 1_000_000)
    # costs are ordered by their high parts first, so the low part is carried over, also below zero
    cost_low = sums.c.context_low + sums.c.ingest_low
    rest = (cost_low % COST_UNIT + COST_UNIT) % COST_UNIT
    whole = sums.c.context_high + sums.c.ingest_high + (cost_low - rest) // COST_UNIT
    zero = sa.literal_column("0", sa.BigInteger)
    tokens = sums.c.context_tokens + sums.c.ingest_tokens
    place = (whole, rest, tokens) if query.order_by == "cost" else (sums.c[query.order_by], zero, zero)
    position = [part.label(name) for part, name in zip(place, _PLACE, strict=True)]
    rows = (
        sa.select(
            sums,
            *position,
            document.c.id.label("present"),
            document.c.collection_id,
            document_version.c.filename,
        )
        .select_from(
            sums.outerjoin(
                document, sa.and_(document.c.id == sums.c.document_id, document.c.tenant_id == query.tenant_id)
            ).outerjoin(
                document_version,
                sa.and_(
                    document_version.c.document_id == document.c.id,
                    document_version.c.version == sa.func.coalesce(document.c.live_version, document.c.version),
                ),
            )
        )
        .subquery()
    )
    order = (*(rows.c[name] for name in _PLACE), rows.c.document_id)
    statement = sa.select(rows).order_by(*(order if query.ascending else (column.desc() for column in order)))
    if after is not None:
        here, there = sa.tuple_(*order), sa.tuple_(*after)
        statement = statement.where(here > there if query.ascending else here < there)
    found = connection.execute(statement.limit(query.limit + 1)).mappings().all()
    page, next_page = cut(
        found, query.limit, lambda row: (*(int(row[name]) for name in _PLACE), str(row["document_id"]), end)
    )
    return {
        "object": "page",
        "data": [_result(row, currency) for row in page],
        "has_more": next_page is not None,
        "next_page": next_page,
        "start_time": query.start,
        "end_time": end,
    }


def _position(page: str | None) -> tuple[int | None, tuple[float | int | str, ...] | None]:
    """The end of the range and the last document of the previous page."""
    if page is None:
        return None, None
    try:
        *last, end = decode_cursor(page, *(int for _ in _PLACE), str, int)
    except InvalidRequest as error:
        raise InvalidRequest("page must be the next_page of this report.", param="page") from error
    return int(end), tuple(last)


def _sums(query: DocumentsQuery, start: int, end: int) -> sa.Subquery:
    """The sums of `_NUMBERS` in `[start, end)`, Unix microseconds, by document."""
    none = sa.literal_column("0", sa.BigInteger)
    present = sa.select(document.c.id.label("document_id"), *(none.label(name) for name in _NUMBERS))
    parts: list[sa.SelectBase] = [present.where(document.c.tenant_id == query.tenant_id)]
    for lines in document_lines():
        numbers = (lines.calls, lines.tokens, high(lines.cost_pico), low(lines.cost_pico), lines.priced)
        found = dict(zip(_EMBEDDED if lines.ingests else _READ, numbers, strict=True))
        at = lines.source.at
        parts.append(
            sa.select(lines.document_id.label("document_id"), *(found.get(name, none).label(name) for name in _NUMBERS))
            .select_from(lines.rows)
            .where(lines.source.tenant_id == query.tenant_id, at >= start, at < end, lines.condition)
        )
    answer = answer_citation.c
    cited = {"num_cited": sa.literal_column("1", sa.BigInteger), "num_citations": answer.num_citations}
    parts.append(
        sa.select(answer.document_id, *(cited.get(name, none).label(name) for name in _NUMBERS)).where(
            answer.tenant_id == query.tenant_id, answer.cited_at >= start, answer.cited_at < end
        )
    )
    every = sa.union_all(*parts).subquery()
    sums = sa.select(
        every.c.document_id,
        *(sa.cast(sa.func.sum(every.c[name]), sa.BigInteger).label(name) for name in _NUMBERS),
    ).group_by(every.c.document_id)
    if query.document_ids is not None:
        sums = sums.where(every.c.document_id.in_(query.document_ids))
    if query.cited is not None:
        times = sa.func.sum(every.c.num_cited)
        sums = sums.having(times > 0 if query.cited else times == 0)
    return sums.subquery()


def _result(row: sa.RowMapping, currency: str) -> dict[str, object]:
    context = row["context_high"] * COST_UNIT + row["context_low"]
    ingest = row["ingest_high"] * COST_UNIT + row["ingest_low"]
    deleted = row["present"] is None
    read, embedded = _priced(row, "num_retrieved", "context_priced"), _priced(row, "num_ingests", "ingest_priced")

    def money(pico: int, *, known: bool) -> dict[str, object]:
        return {"value": decimal(pico) if known else None, "currency": currency}

    return {
        "object": "footnote.usage.documents.result",
        "document_id": row["document_id"],
        "name": DELETED if deleted else row["filename"],
        "deleted": deleted,
        "collection_id": row["collection_id"],
        "num_ingests": row["num_ingests"],
        "ingest_tokens": row["ingest_tokens"],
        "ingest_cost": money(ingest, known=embedded),
        "num_retrieved": row["num_retrieved"],
        "context_tokens": row["context_tokens"],
        "context_cost": money(context, known=read),
        "num_cited": row["num_cited"],
        "num_citations": row["num_citations"],
        "cost": money(
            context + ingest, known=row["context_priced"] > 0 or row["ingest_priced"] > 0 or (read and embedded)
        ),
    }


def _priced(row: sa.RowMapping, calls: str, priced: str) -> bool:
    """Whether a cost is known: there was no call, or a call with a price."""
    return bool(row[calls] == 0 or row[priced] > 0)
