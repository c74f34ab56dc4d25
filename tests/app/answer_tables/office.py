"""Tables of one tenant over documents whose passages the test sets, with quotes and a clock that it moves."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from app.answer_tables.filling import Filling
from app.answer_tables.runner import TableRunner
from app.db.acting import ActingPrincipals
from app.db.answer_tables import AnswerTable, AnswerTableRepository, Column, TableRow
from app.db.presence import OwnProcess
from app.db.table_cells import TableCells
from app.server.state import State
from app.types import Document, Principal, Role
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Hit, Scope, SearchMode
from tests.app.db.samples import Library
from tests.app.watches.desk import FEE, PETS, QUESTION, Desk
from tests.retrieval.fakes import chunk, hit

FEES = Column("Fee", QUESTION)
COLOUR = Column("Colour", "What colour is the door?")
ROOT = Principal("acme", "root", "key_root", Role.ADMIN)


class Passages:
    """Implements a search that finds the passages of the one document in scope, and notes the scopes."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self.scopes: list[Scope] = []
        self.before: Callable[[str], object] = lambda document_id: None

    def put(self, document_id: str, text: str) -> None:
        self._texts[document_id] = text

    def search(
        self, question: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        vector()
        assert scope.document_ids is not None
        (document_id,) = scope.document_ids
        self.before(document_id)
        self.scopes.append(scope)
        found = hit(chunk(1, self._texts[document_id], document_id=document_id), rank=1)
        return (replace(found, scores=replace(found.scores, dense=0.9)),)


class Office(Desk):
    """One tenant's tables, and what asks their cells."""

    def __init__(self, state: State, *, most: int = 20, most_documents: int = 1000) -> None:
        self.passages = Passages()
        super().__init__(state, search=cast(Search, self.passages))
        self.tables = AnswerTableRepository(state.database, most=most, most_documents=most_documents, clock=self.clock)
        self.library = Library(state.database, tenant_id="acme")

    def document(self, text: str = FEE, *, filename: str = "a.txt") -> Document:
        made = self.library.index(text, content=f"{filename}: {text}", filename=filename)
        self.passages.put(made.id, text)
        return made

    def documents(self, *texts: str) -> list[str]:
        return [self.document(text, filename=f"{at}.txt").id for at, text in enumerate(texts or (FEE, PETS))]

    def table(self, documents: Sequence[str], *columns: Column, principal: Principal | None = None) -> AnswerTable:
        scope = Scope(tenant_id="acme", document_ids=tuple(documents))
        return self.tables.create(principal or self.ann, columns or (FEES, COLOUR), scope)

    def cells_of(self, boot_id: str, *, gone: Sequence[str] = ()) -> TableCells:
        return TableCells(self.state.database, OwnProcess(boot_id, lambda boot: boot.in_(list(gone)), self.clock))

    def table_runner(self, cells: TableCells | None = None) -> TableRunner:
        return TableRunner(
            cells=cells or self.cells_of("boot_1"),
            filling=Filling(
                principals=ActingPrincipals(self.state.database, openid_role=Role.READER, clock=self.clock),
                collections=self.state.corpus.collections,
                documents=self.state.corpus.documents,
                clock=self.clock,
            ),
            answerer=lambda: self.answerer,
        )

    def fill(self, *, later: float = 0.0) -> int:
        """Ask the cells that are due, `later` seconds from now."""
        self.now += later
        return self.table_runner().work()

    def now_is(self, table: AnswerTable) -> AnswerTable:
        return self.tables.get(table.id, principal=ROOT)[0]

    def lines(self, table: AnswerTable) -> tuple[TableRow, ...]:
        """The rows of a table."""
        return self.tables.rows(table.id, principal=ROOT, limit=100)[0]

    def states(self, table: AnswerTable) -> list[list[str]]:
        return [[cell.state for cell in row.cells] for row in self.lines(table)]
