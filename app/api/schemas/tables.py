"""Bodies of tables: questions × documents."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.schemas.bounds import MOST_ID, MOST_QUESTION
from app.api.schemas.search import Scoped
from app.api.schemas.shape import Page, RequestBody, ResponseBody, rfc3339
from app.api.schemas.token_usage import Money
from app.db.answer_tables import AnswerTable, CellState, Column, TableCell, TableRow, Told
from app.db.table_bills import TableBill
from app.usage.rollups.sums import decimal

MOST_COLUMNS = 20

_QUESTION = "It is asked of each document by itself."
_STATE = (
    "`running`; `stopped`, for the reason of `state_detail`: the key may not ask any more, or a budget has no room; "
    "`finished`: no cell waits."
)
_CELL = (
    "`waiting`, `asking`; `answered` with footnotes; `unsure`: its footnotes are the nearest passages; `refused`: the "
    "document does not say it; `failed`, for the reason of `error`."
)


class ColumnBody(RequestBody):
    """A question, with a short name for its column."""

    name: str = Field(min_length=1, max_length=MOST_ID, description="The column's name.", examples=["Governing law"])
    question: str = Field(
        min_length=1,
        max_length=MOST_QUESTION,
        description=_QUESTION,
        examples=["Which state's law governs the agreement?"],
    )


class NewTable(Scoped):
    """Questions to ask of each document of a scope."""

    questions: list[Annotated[str, Field(min_length=1, max_length=MOST_QUESTION)] | ColumnBody] = Field(
        min_length=1,
        max_length=MOST_COLUMNS,
        description=f"The columns, {MOST_COLUMNS} at most: questions, or questions with names.",
        examples=[["What is the notice period?", {"name": "Law", "question": "Which law governs the agreement?"}]],
    )
    length: Told = Field(default="short", description="How much each answer tells, as of `/v1/ask`.")

    @property
    def columns(self) -> list[Column]:
        """The columns that the body asks for; a question without a name is its own."""
        return [Column(one, one) if isinstance(one, str) else Column(one.name, one.question) for one in self.questions]


class TableUsageBody(ResponseBody):
    """The model calls on the ledger, of cells that were asked again all of them."""

    prompt_tokens: int = Field(description="Tokens that they read.", examples=[48_120])
    completion_tokens: int = Field(description="Tokens that they wrote; 0 for quotes.", examples=[0])
    total_tokens: int = Field(description="Sum of both.", examples=[48_120])
    cost: Money = Field(description="Cost of the calls that have a price.")
    num_unpriced: int = Field(description="Number of calls without a price.", examples=[0])

    @classmethod
    def of(cls, bill: TableBill, currency: str) -> "TableUsageBody":
        """The body for a bill."""
        cost = Money(value=None if bill.cost_pico is None else decimal(bill.cost_pico), currency=currency)
        return cls(
            prompt_tokens=bill.read,
            completion_tokens=bill.written,
            total_tokens=bill.tokens,
            cost=cost,
            num_unpriced=bill.unpriced,
        )


class TableAnswerBody(ResponseBody):
    """The answer of a cell."""

    id: str = Field(description="The request of the answer, by which the ledger has its calls.", examples=["req_01k9"])
    answered: bool = Field(description="Whether the question is answered, with footnotes.")
    verified: bool = Field(description="Whether every footnote is verified.")
    probability: float | None = Field(description="The probability that it is answered; null: nothing estimated it.")
    reason: str | None = Field(description="Why it is not answered, as in an answer; null where it is.")
    answer: str = Field(description="The text.", examples=["> This Agreement is governed by the laws of Ohio. [1]"])
    value: str | None = Field(description="The words of the document that answer, where a few do.", examples=["Ohio"])
    model: str = Field(description="The model that wrote the text, or chose the quotes.")
    citations: list[dict[str, Any]] = Field(description="Its footnotes, with the fields that they have in an answer.")
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-29T10:00:00.000Z"])

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "TableAnswerBody":
        """The body for an answer that a cell keeps."""
        return cls.model_validate({**kept, "created_at": rfc3339(kept["created_at"])})


class TableCellBody(ResponseBody):
    """One question, asked of one document."""

    state: CellState = Field(description=_CELL, examples=["answered"])
    error: str | None = Field(description="Why it failed, or is asked again, in one sentence; null where it does not.")
    answer: TableAnswerBody | None = Field(description="The answer; null before there is one, and where it failed.")

    @classmethod
    def of(cls, cell: TableCell) -> "TableCellBody":
        """The body for a cell."""
        answer = None if cell.answer is None else TableAnswerBody.of(cell.answer)
        return cls(state=cell.state, error=cell.error, answer=answer)


class TableRowBody(ResponseBody):
    """A document's row."""

    document_id: str = Field(description="The document.", examples=["doc_01k9"])
    filename: str = Field(description="Its name when the table was made.", examples=["supply-agreement.pdf"])
    cells: list[TableCellBody] = Field(description="Its cells, in the order of the questions.")
    usage: TableUsageBody = Field(description="What the row costs so far.")

    @classmethod
    def of(cls, row: TableRow, currency: str) -> "TableRowBody":
        """The body for a row."""
        return cls(
            document_id=row.document_id,
            filename=row.filename,
            cells=list(map(TableCellBody.of, row.cells)),
            usage=TableUsageBody.of(row.bill, currency),
        )


class TableProgressBody(ResponseBody):
    """Cells by state; they sum to `total`."""

    total: int = Field(description="All cells: questions times documents.", examples=[1600])
    waiting: int = Field(description="Not asked yet, or to be asked again.")
    asking: int = Field(description="Being asked.")
    answered: int = Field(description="Answered with footnotes.")
    unsure: int = Field(description="With the nearest passages only.")
    refused: int = Field(description="Of documents that do not say it.")
    failed: int = Field(description="That could not be asked.")

    @classmethod
    def of(cls, cells: Mapping[CellState, int]) -> "TableProgressBody":
        """The body for the numbers of cells by state."""
        names = set(cls.model_fields) - {"total"}
        return cls.model_validate({**dict.fromkeys(names, 0), **cells, "total": sum(cells.values())})


class TableColumnBody(ResponseBody):
    """A column of a table."""

    name: str = Field(description="Its name.", examples=["Governing law"])
    question: str = Field(description=_QUESTION)


class AnswerTableBody(ResponseBody):
    """A table without its rows."""

    id: str = Field(description="The table's id.", examples=["table_01k9"])
    object: Literal["table"] = Field(default="table", description="Always `table`.")
    questions: list[TableColumnBody] = Field(description="Its columns.")
    documents: int = Field(description="The number of its documents, which are its rows.", examples=[200])
    length: Told = Field(description="How much each answer tells.")
    user_id: str = Field(description="The user whom it belongs to.", examples=["user_1"])
    key_id: str = Field(description="The key that made it and pays; `openid` for a user without a key.")
    state: Literal["running", "stopped", "finished"] = Field(description=_STATE, examples=["running"])
    state_detail: str | None = Field(
        description="Why it is stopped, or waits, in one sentence; null where it does not."
    )
    progress: TableProgressBody = Field(description="Cells by state.")
    created_at: str = Field(description="RFC 3339 UTC.")
    updated_at: str = Field(description="When a cell was finished last, RFC 3339 UTC.")

    @classmethod
    def of(cls, table: AnswerTable) -> "AnswerTableBody":
        """The body for a table."""
        return cls.model_validate(_fields(table))


class AnswerTablePage(AnswerTableBody):
    """A table with a page of its rows."""

    usage: TableUsageBody = Field(description="What the whole table costs so far.")
    rows: Page[TableRowBody] = Field(description="A page of its rows, in their order.")

    @classmethod
    def with_rows(cls, table: AnswerTable, usage: TableUsageBody, rows: Page[TableRowBody]) -> "AnswerTablePage":
        """The body for a table and a page of its rows."""
        return cls.model_validate({**_fields(table), "usage": usage, "rows": rows})


class TableDeletedBody(ResponseBody):
    """A table was deleted."""

    id: str = Field(description="Its id.")
    object: Literal["table"] = Field(default="table", description="Always `table`.")
    deleted: bool = Field(default=True, description="Always true.")


_SAME = ("id", "length", "user_id", "key_id", "state", "state_detail")  # fields that a table and its body have alike


def _fields(table: AnswerTable) -> dict[str, Any]:
    return {
        **{name: getattr(table, name) for name in _SAME},
        "questions": [TableColumnBody(name=one.name, question=one.question) for one in table.columns],
        "documents": table.rows,
        "progress": TableProgressBody.of(table.cells),
        "created_at": rfc3339(table.created_at),
        "updated_at": rfc3339(table.updated_at),
    }
