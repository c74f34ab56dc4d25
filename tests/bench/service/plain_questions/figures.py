"""Shares with their intervals from the verdicts on all questions, as data and as a table."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.bench.service.plain_questions.judging import Verdict
from tests.bench.service.plain_questions.questions import KINDS, Question

_Z = 1.959964
"""Of a two-sided interval of 95 %."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One question asked: the verdict, and the wall-clock seconds it took."""

    question: Question
    verdict: Verdict
    seconds: float


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `of`, with the interval of 95 % in which the true share lies (Wilson, 1927)."""

    hits: int
    of: int
    low: float
    high: float

    @classmethod
    def count(cls, found: Sequence[bool]) -> "Share":
        """The share of those that are true."""
        hits, of = sum(found), len(found)
        if not of:
            return cls(0, 0, 0.0, 1.0)
        share, square = hits / of, _Z * _Z / of
        middle = (share + square / 2) / (1 + square)
        half = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
        return cls(hits, of, max(0.0, round(middle - half, 3)), min(1.0, round(middle + half, 3)))

    def __str__(self) -> str:
        if not self.of:
            return "none"
        return f"{self.hits / self.of:.2f} ({self.hits}/{self.of}; {self.low:.2f} to {self.high:.2f})"


def shares(judged: Sequence[Judged]) -> dict[str, Share]:
    """Every share, by its name in the table."""
    answerable = [one.verdict for one in judged if one.question.answerable]
    other = [one.verdict for one in judged if not one.question.answerable]
    given = [one.verdict for one in judged if one.verdict.marked]
    leads = [one.verdict for one in judged if one.verdict.outcome == "answered" and one.verdict.lead is not None]
    unsure = [verdict for verdict in answerable if verdict.outcome == "unsure"]

    def answered(verdicts: Sequence[Verdict]) -> list[bool]:
        return [verdict.outcome == "answered" for verdict in verdicts]

    return {
        "lead or first quote right": Share.count([v.outcome == "answered" and v.first for v in answerable]),
        "right within three quotes": Share.count([v.outcome == "answered" and v.three for v in answerable]),
        "lead right, of those given": Share.count([bool(v.lead) for v in leads]),
        "marked confirmed and first wrong": Share.count([not v.first for v in given]),
        "marked confirmed, nothing right": Share.count([not v.three for v in given]),
        "answerable: answered": Share.count(answered(answerable)),
        "answerable: unsure": Share.count([v.outcome == "unsure" for v in answerable]),
        "unsure, right words shown": Share.count([v.three for v in unsure]),
        "answerable: refused": Share.count([v.outcome == "refused" for v in answerable]),
        "unanswerable: answered": Share.count(answered(other)),
        "unanswerable: unsure": Share.count([v.outcome == "unsure" for v in other]),
        "failed": Share.count([one.verdict.outcome == "failed" for one in judged]),
    }


def by_kind(judged: Sequence[Judged]) -> dict[str, Mapping[str, int]]:
    """For each kind the number of questions, and how many are right first, right within three, and refused.

    An unanswerable question is right if it was not answered.
    """
    found: dict[str, Mapping[str, int]] = {}
    for kind in KINDS:
        verdicts = [one.verdict for one in judged if one.question.kind == kind]
        unanswered = sum(verdict.outcome != "answered" for verdict in verdicts)
        given = [verdict for verdict in verdicts if verdict.outcome == "answered"]
        found[kind] = {
            "questions": len(verdicts),
            "first": unanswered if kind == "unanswerable" else sum(verdict.first for verdict in given),
            "three": unanswered if kind == "unanswerable" else sum(verdict.three for verdict in given),
            "refused": sum(verdict.outcome == "refused" for verdict in verdicts),
        }
    return found


def figures(judged: Sequence[Judged], *, processor_seconds: float) -> dict[str, Any]:
    """All figures of one way to answer, ready for JSON."""
    return {
        "questions": len(judged),
        "median_seconds": round(statistics.median(one.seconds for one in judged), 3),
        "processor_seconds_a_question": round(processor_seconds / len(judged), 3),
        "shares": {name: asdict(share) for name, share in shares(judged).items()},
        "kinds": by_kind(judged),
    }


def table(ways: Mapping[str, Mapping[str, Any]]) -> str:
    """Two Markdown tables, a column for each way: the shares with the times, and the kinds."""
    rows = [["", *ways]]
    for name in next(iter(ways.values()))["shares"]:
        rows.append([name, *(str(Share(**way["shares"][name])) for way in ways.values())])
    rows.append(["median seconds", *(f"{way['median_seconds']:.2f}" for way in ways.values())])
    rows.append(["processor seconds", *(f"{way['processor_seconds_a_question']:.2f}" for way in ways.values())])
    kinds = [["first, within three, refused, of", *ways]]
    for kind in KINDS:
        cells = [way["kinds"][kind] for way in ways.values()]
        kinds.append([kind, *(f"{c['first']}, {c['three']}, {c['refused']}, {c['questions']}" for c in cells)])
    return "\n\n".join(_markdown(part) for part in (rows, kinds))


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]])
