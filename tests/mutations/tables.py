"""`python -m tests.mutations.tables`: bugs of tables, planted; each must fail a test."""

from tests.mutations.planting import Bug, main

_CELLS = "app/db/table_cells.py"
_FILLING = "app/answer_tables/filling.py"
_CLAIMED = ("tests/app/db/test_answer_tables.py",)
_FILLED = ("tests/app/answer_tables/test_filling.py",)

BUGS = (
    Bug(
        "a cell is finished by a process that lost it", _CELLS, "        _CELL.claim == claimed.claim,\n", "", _CLAIMED
    ),
    Bug(
        "a process that lost a cell stops its table",
        _CELLS,
        '_TABLE.id == claimed.table_id, _TABLE.state == "running", held\n',
        '_TABLE.id == claimed.table_id, _TABLE.state == "running"\n',
        _CLAIMED,
    ),
    Bug(
        "a claim locks the cell before its table",
        _CELLS,
        "running.with_for_update(read=True, key_share=True, skip_locked=True)",
        "running",
        _CLAIMED,
    ),
    Bug(
        "a cell that ends the server each time is asked for ever",
        _CELLS,
        "row.attempts < MOST_ATTEMPTS",
        "row is not None",
        _FILLED,
    ),
    Bug(
        "tables are asked one after another",
        _CELLS,
        "                self._last = table_id\n",
        "",
        _FILLED,
    ),
    Bug(
        "a rate limit costs a try",
        _FILLING,
        'CellFinding(state="waiting", counted=False, ',
        'CellFinding(state="waiting", ',
        _FILLED,
    ),
    Bug(
        "a budget without room fails the cell alone",
        _FILLING,
        "except (Forbidden, BudgetExceeded) as error:",
        "except Forbidden as error:",
        _FILLED,
    ),
    Bug(
        "the document of another collection is read",
        _FILLING,
        "tenant_id=principal.tenant_id, collections=principal.collections",
        "tenant_id=principal.tenant_id",
        _FILLED,
    ),
    Bug(
        "resume asks finished cells again",
        "app/db/answer_tables.py",
        'its.state == "failed").values(**again)',
        'its.state != "waiting").values(answer=None, **again)',
        _FILLED,
    ),
)


if __name__ == "__main__":
    raise SystemExit(main(BUGS, module="tests.mutations.tables", description=__doc__))
