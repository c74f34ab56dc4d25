"""Fits the softmax over the cells of a row, and counts what the selection marks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.tuning.table_cells.cases import TableCase

_L2 = 1e-3
_FOLDS = 5
_STEPS = 100
_NEAR = 1e-9

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Of the questions of a set: whose row is first, whose cell is marked there, how many have a lead, and right."""

    questions: int
    rows: int
    cells: int
    led: int
    led_right: int


def fitted_cells(cases: Sequence[TableCase]) -> dict[str, float]:
    """The weights by name, for cases whose row was read.

    Raises:
        ValueError: No row was read.
    """
    known = [case for case in cases if len(case.values) > 1]
    if not known:
        raise ValueError("No case has a row that was read; ask more questions.")
    names = list(known[0].values[0])
    rows = [np.array([[cell[name] for name in names] for cell in case.values]) for case in known]
    found = np.zeros(len(names))
    for _ in range(_STEPS):
        slope, curve = 2 * _L2 * found, 2 * _L2 * np.eye(len(names))
        for row, case in zip(rows, known, strict=True):
            shares = _softmax(row @ found)
            slope = slope + row.T @ (shares - np.eye(len(row))[case.right]) / len(rows)
            curve = curve + row.T @ (np.diag(shares) - np.outer(shares, shares)) @ row / len(rows)
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < _NEAR:
            break
    return {name: round(float(weight), 3) for name, weight in zip(names, found, strict=True)}


def share_right(cases: Sequence[TableCase], weights: Mapping[str, float]) -> float:
    """The share of the cases whose row was read in which the right cell is the likeliest of its row."""
    known = [case for case in cases if len(case.values) > 1]
    scores = [[sum(weights[name] * value for name, value in cell.items()) for cell in case.values] for case in known]
    right = sum(int(np.argmax(of_case)) == case.right for of_case, case in zip(scores, known, strict=True))
    return right / len(known) if known else 0.0


def cross_validated_cells(cases: Sequence[TableCase]) -> float:
    """`share_right` of weights that were fitted on other questions, by five folds."""
    known = [case for case in cases if len(case.values) > 1]
    right = 0.0
    for fold in range(_FOLDS):
        left_out = known[fold::_FOLDS]
        others = [case for place, case in enumerate(known) if place % _FOLDS != fold]
        right += share_right(left_out, fitted_cells(others)) * len(left_out)
    return right / len(known)


def counted(cases: Sequence[TableCase]) -> Counts:
    """What the selection marks first, by the weights that ship."""
    return Counts(
        len(cases),
        sum(case.row for case in cases),
        sum(case.cell for case in cases),
        sum(case.leads for case in cases),
        sum(case.leads and case.cell for case in cases),
    )


def _softmax(scores: Floats) -> Floats:
    shares = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())
