"""Fits and measures the choice of cells: `python -m app.tuning.table_cells.run SETS OUT [--data FOLDER]`.

SETS holds tatqa-dev and the training sets as folders, in it or in `train`. OUT gets `cases.jsonl`, one question a line;
where it is there, no question is asked again. Prints the weights that the training parts give, which are copied into
`app.answering.quoting.asked_cells` by hand, and of each set what the selection marks with the weights there.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from app.settings import load_settings
from app.tuning.table_cells.cases import MEASURED, TRAINING, TableCase, read_table_cases, table_cases, written
from app.tuning.table_cells.fit import counted, cross_validated_cells, fitted_cells, share_right


def main() -> None:
    """Ask, fit, and print."""
    parser = argparse.ArgumentParser(prog="python -m app.tuning.table_cells.run", description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, help="the scratch data dir (default: OUT/data); kept for another run")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    file = chosen.out / "cases.jsonl"
    if not file.exists():
        partial = file.with_suffix(".partial")
        settings = load_settings(generator="extractive")
        with partial.open("w", encoding="utf-8") as lines:
            for case in table_cases(chosen.sets, settings, chosen.data or chosen.out / "data"):
                lines.write(written(case) + "\n")
        partial.replace(file)
    Console().print(report(read_table_cases(file)), markup=False, highlight=False)


def report(cases: Sequence[TableCase]) -> str:
    """The weights that the training parts give, what they reach, and what is marked in each part of each set."""
    trains = [case for case in cases if case.part != "held"]
    held = [case for case in cases if case.part == "held"]
    weights = fitted_cells(trains)
    found = [
        json.dumps(weights, indent=1),
        f"right cell of the right row, training parts, five folds: {cross_validated_cells(trains):.3f}",
        f"right cell of the right row, held half, these weights: {share_right(held, weights):.3f}",
        "set, part: questions; first row right; first marked cell right; leads; of these right",
    ]
    for name in (MEASURED, *TRAINING):
        for part in ("held", "tune", "training"):
            of_part = [case for case in cases if (case.dataset, case.part) == (name, part)]
            if of_part:
                one = counted(of_part)
                found.append(f"{name}, {part}: {one.questions}; {one.rows}; {one.cells}; {one.led}; {one.led_right}")
    return "\n".join(found)


if __name__ == "__main__":
    main()
