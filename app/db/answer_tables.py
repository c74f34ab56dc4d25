"""Tables of questions × documents, with their rows and cells. They belong to the user who made them; the key pays."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from app.db.idempotency import forget_answers, note_effect
from app.db.paging import Cut, cut, decode_cursor
from app.db.scopes import documents_in
from app.db.session import Database
from app.db.table_bills import TableBill, bill_in, bills_of_rows
from app.db.tables.answer_tables import answer_table, answer_table_cell, answer_table_request, answer_table_row
from app.db.tables.documents import app_user, document, document_version
from app.db.tenants import ensure_user, within
from app.db.values import require_text
from app.errors import Conflict, Forbidden, InvalidRequest, NotFound
from app.ids import new_id
from app.reach import reach_of
from app.types import DocumentStatus, Principal
from retrieval.types import Scope

TableState: TypeAlias = Literal["running", "stopped", "finished"]
CellState: TypeAlias = Literal["waiting", "asking", "answered", "unsure", "refused", "failed"]
Told: TypeAlias = Literal["short", "normal", "long"]

OPEN: tuple[CellState, ...] = ("waiting", "asking")
"""States of a cell that is not finished."""

_ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A question of a table, and the name of its column."""

    name: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """A table. Times are Unix seconds.

    Attributes:
        key_id: The key that made it and pays.
        length: How much each answer tells.
        rows: The number of its documents.
        state_detail: Why it is stopped, or waits, in one sentence; None where it does not.
        cells: The number of cells by state.
    """

    id: str
    tenant_id: str
    user_id: str
    key_id: str
    columns: tuple[Column, ...]
    length: Told
    rows: int
    state: TableState
    state_detail: str | None
    created_at: float
    updated_at: float
    cells: Mapping[CellState, int]


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell: its answer in JSON types, None before it has one; `error` says why it failed, in one sentence."""

    state: CellState
    answer: Mapping[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """The cells of one document, in the order of the questions, and what they cost."""

    number: int
    document_id: str
    filename: str
    cells: tuple[TableCell, ...]
    bill: TableBill


class AnswerTableRepository:
    """Tables of all tenants. They are accessible as conversations are: to their user and to administrators.

    Example:
        >>> made = tables.create(principal, [Column("Fee", "What is the fee?")], scope)
        >>> tables.rows(made.id, principal=principal, limit=50)
        ((TableRow(number=0, document_id='doc_1', …),), None)
    """

    def __init__(
        self,
        database: Database,
        *,
        most: int = 20,
        most_documents: int = 1000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A key may have `most` tables of `most_documents` documents each."""
        self._database = database
        self._most = most
        self._most_documents = most_documents
        self._clock = clock

    def create(
        self, principal: Principal, columns: Sequence[Column], scope: Scope, *, length: Told = "short"
    ) -> AnswerTable:
        """A new table, whose cells wait: the documents as `scope` names them, else by their names.

        Raises:
            NotFound: A document that the scope names does not exist for this caller.
            InvalidRequest: A question cannot be stored, two columns have one name, or it has no documents or too many.
            Conflict: The key has as many tables as one may have.
        """
        for column in columns:
            require_text(column.name, param="questions")
            require_text(column.question, param="questions")
        if len({column.name for column in columns}) < len(columns):
            raise InvalidRequest("Each column needs a name of its own.", param="questions")
        made, now = new_id("table"), self._clock()
        with self._database.write() as connection:
            self._require_room(connection, principal, now=now)
            documents = self._documents(connection, scope)
            connection.execute(
                sa.insert(answer_table).values(
                    id=made,
                    tenant_id=principal.tenant_id,
                    user_id=principal.user_id,
                    key_id=principal.key_id,
                    questions=[{"name": column.name, "question": column.question} for column in columns],
                    length=length,
                    row_count=len(documents),
                    due_at=now,
                    created_at=now,
                    updated_at=now,
                )
            )
            for start in range(0, len(documents), _ROWS_AT_ONCE):
                numbered = list(enumerate(documents))[start : start + _ROWS_AT_ONCE]
                rows = [
                    {"table_id": made, "row_no": at, "document_id": id_, "filename": name}
                    for at, (id_, name) in numbered
                ]
                cells = [
                    {"table_id": made, "row_no": at, "column_no": column, "due_at": now}
                    for at, _ in numbered
                    for column in range(len(columns))
                ]
                connection.execute(sa.insert(answer_table_row), rows)
                connection.execute(sa.insert(answer_table_cell), cells)
            note_effect(connection)
            return _find(connection, made, principal)

    def list(self, principal: Principal, *, limit: int, cursor: str | None = None) -> Cut[AnswerTable]:
        """A page of tables, newest first, and the cursor of the next page."""
        query = sa.select(answer_table).where(*within(reach_of(principal), answer_table))
        order = answer_table.c.created_at, answer_table.c.id
        if cursor is not None:
            created_at, last_id = decode_cursor(cursor, float, str)
            query = query.where(sa.tuple_(*order) < sa.tuple_(created_at, last_id))
        with self._database.read() as connection:
            found = connection.execute(query.order_by(*(one.desc() for one in order)).limit(limit + 1)).all()
            page, following = cut(found, limit, lambda row: (row.created_at, row.id))
            return _to_tables(connection, page), following

    def get(self, table_id: str, *, principal: Principal) -> tuple[AnswerTable, TableBill]:
        """The table, and what all of it costs so far.

        Raises:
            NotFound: There is no such table for this caller.
        """
        with self._database.read() as connection:
            return _find(connection, table_id, principal), bill_in(connection, table_id)

    def rows(self, table_id: str, *, principal: Principal, limit: int, cursor: str | None = None) -> Cut[TableRow]:
        """A page of its rows in their order, and the cursor of the next page.

        Raises:
            NotFound: There is no such table for this caller.
        """
        first = 0 if cursor is None else int(decode_cursor(cursor, int)[0]) + 1
        if first >= 2**31:
            raise InvalidRequest("The cursor is not one this list gave out.", param="cursor")
        query = (
            sa.select(answer_table_row)
            .where(answer_table_row.c.table_id == table_id, answer_table_row.c.row_no >= first)
            .order_by(answer_table_row.c.row_no)
            .limit(limit + 1)
        )
        with self._database.read() as connection:
            _require(connection, table_id, principal)
            page, following = cut(connection.execute(query).all(), limit, lambda row: (row.row_no,))
            return (_to_rows(connection, table_id, page), following) if page else ((), None)

    def resume(self, table_id: str, *, principal: Principal) -> AnswerTable:
        """Go on with a table that is stopped, and ask the cells again that failed.

        Raises:
            NotFound: There is no such table for this caller.
            Forbidden: It is another user's, whose key pays.
        """
        now, its = self._clock(), answer_table_cell.c
        with self._database.write() as connection:
            owner = _require(connection, table_id, principal, lock=True)
            if owner != principal.user_id:
                raise Forbidden("This table belongs to another user; an administrator may delete it.")
            again = {"state": "waiting", "due_at": now, "attempts": 0, "error": None}
            connection.execute(
                sa.update(answer_table_cell).where(its.table_id == table_id, its.state == "failed").values(**again)
            )
            waits = {"due_at": now, "attempts": 0}
            connection.execute(
                sa.update(answer_table_cell).where(its.table_id == table_id, its.state == "waiting").values(**waits)
            )
            goes_on = {"state": "running", "state_detail": None, "due_at": now, "updated_at": now}
            connection.execute(sa.update(answer_table).where(answer_table.c.id == table_id).values(**goes_on))
            return _find(connection, table_id, principal)

    def delete(self, table_id: str, *, principal: Principal) -> None:
        """Delete it with its answers; a cell that is asked is cancelled. The ledger keeps what it cost.

        Raises:
            NotFound: There is no such table for this caller.
        """
        with self._database.write() as connection:
            _require(connection, table_id, principal, lock=True)
            for part in (answer_table_request, answer_table_cell, answer_table_row):
                connection.execute(sa.delete(part).where(part.c.table_id == table_id))
            connection.execute(sa.delete(answer_table).where(answer_table.c.id == table_id))
            forget_answers(connection, principal.tenant_id)

    def _require_room(self, connection: sa.Connection, principal: Principal, *, now: float) -> None:
        ensure_user(connection, principal.tenant_id, principal.user_id, now=now)
        owner = app_user.c.tenant_id == principal.tenant_id, app_user.c.id == principal.user_id
        connection.execute(sa.select(app_user.c.id).where(*owner).with_for_update())  # two count one after another
        its = answer_table.c
        of_key = sa.select(sa.func.count()).where(
            its.tenant_id == principal.tenant_id, its.user_id == principal.user_id, its.key_id == principal.key_id
        )
        if connection.execute(of_key).scalar_one() >= self._most:
            raise Conflict(f"A key may have {self._most} tables; delete one first.")

    def _documents(self, connection: sa.Connection, scope: Scope) -> Sequence[tuple[str, str]]:
        """Ids and names of the documents in scope."""
        query = (
            sa.select(document.c.id, document_version.c.filename)
            .join(
                document_version,
                sa.and_(
                    document_version.c.document_id == document.c.id,
                    document_version.c.version == sa.func.coalesce(document.c.live_version, document.c.version),
                ),
            )
            .where(*documents_in(scope, connection), document.c.status != DocumentStatus.DELETING.value)
            .order_by(document_version.c.filename, document.c.id)
            .limit(self._most_documents + 1)
        )
        found = {row.id: row.filename for row in connection.execute(query)}
        named = None if scope.document_ids is None else dict.fromkeys(scope.document_ids)
        if len(found if named is None else named) > self._most_documents:
            raise InvalidRequest(f"A table has {self._most_documents} documents at most.", param="document_ids")
        if (
            named is not None
            and scope.filter is None
            and (missing := next((one for one in named if one not in found), None))
        ):
            raise NotFound(f"There is no such document: {missing}.")
        if not found:
            raise InvalidRequest("There are no documents in this scope.", param="document_ids")
        return [(one, found[one]) for one in (found if named is None else named) if one in found]


def _require(connection: sa.Connection, table_id: str, principal: Principal, *, lock: bool = False) -> str:
    """Check that the caller reaches a table; returns the user whom it belongs to."""
    query = sa.select(answer_table.c.user_id).where(
        answer_table.c.id == table_id, *within(reach_of(principal), answer_table)
    )
    owner = connection.execute(query.with_for_update() if lock else query).scalar_one_or_none()
    if owner is None:
        raise NotFound("There is no such table.")
    return str(owner)


def _find(connection: sa.Connection, table_id: str, principal: Principal) -> AnswerTable:
    _require(connection, table_id, principal)
    rows = connection.execute(sa.select(answer_table).where(answer_table.c.id == table_id)).all()
    return _to_tables(connection, rows)[0]


def _to_tables(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> tuple[AnswerTable, ...]:
    its, counts = answer_table_cell.c, dict[str, dict[CellState, int]]()
    of_these = sa.select(its.table_id, its.state, sa.func.count()).where(its.table_id.in_([row.id for row in rows]))
    for table_id, state, number in connection.execute(of_these.group_by(its.table_id, its.state)):
        counts.setdefault(table_id, {})[state] = number
    return tuple(_to_table(row, counts.get(row.id, {})) for row in rows)


def _to_table(row: sa.Row[Any], cells: Mapping[CellState, int]) -> AnswerTable:
    done = row.state == "running" and not any(cells.get(state) for state in OPEN)
    return AnswerTable(
        id=row.id,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        key_id=row.key_id,
        columns=tuple(Column(one["name"], one["question"]) for one in row.questions),
        length=row.length,
        rows=row.row_count,
        state="finished" if done else row.state,
        state_detail=None if done else row.state_detail,
        created_at=row.created_at,
        updated_at=row.updated_at,
        cells=cells,
    )


def _to_rows(connection: sa.Connection, table_id: str, rows: Sequence[sa.Row[Any]]) -> tuple[TableRow, ...]:
    its, first, last = answer_table_cell.c, rows[0].row_no, rows[-1].row_no
    query = (
        sa.select(its.row_no, its.state, its.answer, its.error)
        .where(its.table_id == table_id, its.row_no.between(first, last))
        .order_by(its.row_no, its.column_no)
    )
    cells: dict[int, list[TableCell]] = {row.row_no: [] for row in rows}
    for cell in connection.execute(query):
        cells[cell.row_no].append(TableCell(cell.state, cell.answer, cell.error))
    bills = bills_of_rows(connection, table_id, first=first, last=last)
    return tuple(
        TableRow(
            row.row_no, row.document_id, row.filename, tuple(cells[row.row_no]), bills.get(row.row_no, TableBill())
        )
        for row in rows
    )
