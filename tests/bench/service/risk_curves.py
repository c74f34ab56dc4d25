"""`python -m tests.bench.service.risk_curves FILE... --out docs/risk-coverage.svg`: risk and coverage of measured sets.

Each FILE is a `run.json` of `footnote eval --answers-only` (asked with `--abstention-threshold 1`), or what
`plain_questions --reveal --out` or `table_questions --out` wrote. A question is answered where the probability of its
first quote is high enough; the risk is the share of these that is wrong, an answer to an unanswerable question too. The
point at which answers are confirmed (`app.answering.citing.citation.CONFIRMED`) is printed beside each curve.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.answering.citing.citation import CONFIRMED
from app.evaluation.record import Run
from app.evaluation.report.answer_report import scored_questions
from app.evaluation.report.curves import picture, risk_coverage_chart
from app.evaluation.risk_coverage import OperatingPoint, ScoredQuestion, area_under, risk_coverage
from tests.bench.service.plain_questions.judging import judge
from tests.bench.service.plain_questions.questions import load

_LEAST = 5  # answers on which the left end of a curve is drawn: one wrong answer of two says nothing
_DRAWN = 60  # points of a curve at most


def outcomes_of(path: Path) -> Iterator[tuple[str, list[ScoredQuestion]]]:
    """The sets in a file, by their names, and the outcomes of their questions."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if "ways" not in found:
        for one in Run.model_validate(found).sets:
            for group, outcomes in scored_questions(one).items():
                yield (one.name if group == "answers" else f"{one.name}, {group}"), outcomes
    elif "half" in found:
        yield "plain questions", _of_plain_questions(next(iter(found["answers"].values())))
    else:
        yield "tables", _of_tables(next(iter(found["answers"].values())))


def _of_plain_questions(rows: Sequence[Mapping[str, Any]]) -> list[ScoredQuestion]:
    known = {question.text: question for question in load()}
    outcomes = []
    for row in rows:
        question, body = known[row["question"]], row["body"]
        quotes = body.get("quoted_spans") or []
        score = 1 - quotes[0]["answers"] if quotes else 1.0
        right = question.answerable and judge(question, body).first
        outcomes.append(ScoredQuestion(score=score, answerable=question.answerable, correct=right))
    return outcomes


def _of_tables(rows: Sequence[Mapping[str, Any]]) -> list[ScoredQuestion]:
    return [ScoredQuestion(score=1 - (row["answers"] or 0.0), answerable=True, correct=row["cell"]) for row in rows]


def confirmed(outcomes: Sequence[ScoredQuestion]) -> tuple[int, int]:
    """How many questions have a probability from which on answers are confirmed, and how many of these are wrong."""
    sure = [one for one in outcomes if one.score <= 1 - CONFIRMED]
    return len(sure), sum(not one.correct for one in sure)


def drawn(outcomes: Sequence[ScoredQuestion]) -> list[OperatingPoint]:
    """The points of a curve from its fifth answer on, evenly spaced, including the last."""
    points = [point for point in risk_coverage(outcomes) if point.coverage * len(outcomes) >= _LEAST - 0.5]
    step = max(1, -(-len(points) // _DRAWN))
    return points[::-1][::step][::-1]


def main() -> None:
    """Draw the picture, and print a row of a Markdown table for each set."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.service.risk_curves",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, help="the picture, as SVG")
    chosen = parser.parse_args()
    sets = {name: outcomes for path in chosen.files for name, outcomes in outcomes_of(path) if len(outcomes) >= _LEAST}
    print("| set | questions, unanswerable | area under the curve | confirmed, of these wrong | risk of all |")
    print("|---|---|---|---|---|")
    for name, outcomes in sets.items():
        sure, wrong = confirmed(outcomes)
        unanswerable = sum(not one.answerable for one in outcomes)
        risk = risk_coverage(outcomes)[-1].risk
        print(
            f"| {name} | {len(outcomes)}, {unanswerable} | {area_under(outcomes):.3f} | {sure}, {wrong} | {risk:.2f} |"
        )
    curves = {name: drawn(outcomes) for name, outcomes in sets.items()}
    chosen.out.write_text(picture(risk_coverage_chart(curves, title="Risk and coverage of quotes")), encoding="utf-8")


if __name__ == "__main__":
    main()
