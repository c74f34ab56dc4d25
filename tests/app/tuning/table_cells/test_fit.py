"""app.tuning.table_cells: the weights of cells, and what is counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.tuning.table_cells.cases import Part, TableCase, half_of, read_table_cases, written
from app.tuning.table_cells.fit import Counts, counted, cross_validated_cells, fitted_cells, share_right
from app.tuning.table_cells.run import report


def case(right: int, *, part: Part = "training", cell: bool = True, leads: bool = False) -> TableCase:
    """A row of two cells; the right one is named by the question, and the reader points at the first."""
    cells = tuple({"named": float(place == right), "margin": float(place == 0)} for place in range(2))
    return TableCase(
        dataset="set", question_id="q", part=part, values=cells, right=right, row=True, cell=cell, leads=leads
    )


CASES = [case(0), case(1), case(1), case(0), case(1), case(1)]


def test_what_tells_the_right_cell_gets_the_weight() -> None:
    weights = fitted_cells(CASES)

    assert weights["named"] > abs(weights["margin"])
    assert share_right(CASES, weights) == 1
    assert cross_validated_cells(CASES) == 1
    assert share_right(CASES, {"named": 0.0, "margin": 1.0}) == pytest.approx(2 / 6)


def test_rows_that_were_not_read_fit_nothing() -> None:
    with pytest.raises(ValueError, match="row that was read"):
        fitted_cells([])


def test_marks_and_leads_are_counted() -> None:
    found = counted([case(0, leads=True), case(1, cell=False, leads=True), case(1)])

    assert found == Counts(questions=3, rows=3, cells=2, led=2, led_right=1)


def test_cases_are_kept_on_disk(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(written, CASES)), encoding="utf-8")

    assert read_table_cases(file) == CASES


def test_both_halves_have_blocks() -> None:
    assert {half_of(str(block)) for block in range(20)} == {"tune", "held"}


def test_the_report_tells_the_parts_of_sets_apart() -> None:
    held = [replace(case(1, part="held", cell=False), dataset="tatqa-dev")]
    others = [replace(one, dataset="ait-qa") for one in CASES]

    lines = report([*held, *others]).splitlines()

    assert lines[-2:] == ["tatqa-dev, held: 1; 1; 0; 0; 0", "ait-qa, training: 6; 6; 6; 0; 0"]
