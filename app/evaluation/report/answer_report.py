"""The report's sections about answers: the model beside the extractive baseline, and the effect of refusing."""

from collections.abc import Mapping, Sequence

from app.evaluation.intervals import Estimate
from app.evaluation.measures import Measure, measures_of
from app.evaluation.record import Run, SetRun
from app.evaluation.report.charts import ChartRow, dot_chart
from app.evaluation.report.curves import risk_coverage_chart
from app.evaluation.report.markup import change_row, dot, figure, folded, section, table
from app.evaluation.risk_coverage import OperatingPoint, ScoredQuestion, area_under, risk_coverage

_MODEL, _READER = "model", "extractive reader"
_TITLES = {"answers": "Answers", "presented": "Answers from presented documents"}


def answer_sections(run: Run) -> list[str]:
    """Two sections: answers from the whole collection, and answers from presented documents. Each may be empty."""
    return [section(title, [*_figures(run, group), *_floor_table(run, group)]) for group, title in _TITLES.items()]


def _figures(run: Run, group: str) -> list[str]:
    """A chart for each set and each group of its questions."""
    parts = []
    for found in run.sets:
        measures = [
            measure for measure in measures_of(found.values) if measure.group == group and measure.unit == "share"
        ]
        for variant in dict.fromkeys(measure.variant for measure in measures):
            rows = _rows(found, [measure for measure in measures if measure.variant == variant])
            if rows:
                title = f"{found.name}: {variant}" if variant else found.name
                compared = any(len(row.dots) > 1 for row in rows)
                legend = (_MODEL, _READER) if compared else ()
                parts.append(figure(title, dot_chart(rows, legend=legend, title=f"answers of {title}")))
    return parts


def _rows(found: SetRun, measures: Sequence[Measure]) -> list[ChartRow]:
    """One row per measure: the model's figure, and the baseline's where it has one."""
    summary: Mapping[str, Estimate] = found.summary
    rows = []
    for measure in measures:
        both = [measure.key, measure.floor or ""]
        dots = tuple(dot(series, measure, summary[key]) for series, key in enumerate(both) if key in summary)
        if measure.key in summary:
            rows.append(ChartRow(measure.label, dots))
    return rows


def _floor_table(run: Run, group: str) -> list[str]:
    """A table of the differences between model and baseline, paired by question."""
    rows = [
        change_row(found.name, measure, found.against_floor[measure.key])
        for found in run.sets
        for measure in measures_of(found.values)
        if measure.group == group and measure.key in found.against_floor
    ]
    head = ("set", "measure", _READER, _MODEL, "difference", "95 % interval", "p", "n")
    return [folded(f"The model less the {_READER}", table(head, rows))] if rows else []


FALSE_REFUSALS = (0.0, 0.05, 0.1, 0.2)  # of the answerables, that a threshold may cost
_DRAWN = 200  # points of a curve at most
_ANSWERS = "answers"
_ANSWERABLE = "presented/answerable"
_UNANSWERED = {"near-miss": "presented/near-miss", "off-topic": "presented/off-topic"}
HEAD = ("questions", "area under the curve", "answerables refused", "unanswerables refused", "coverage", "risk",
        "threshold")  # fmt: skip


def outcomes_of(found: SetRun) -> dict[str, list[ScoredQuestion]]:
    """The outcomes by group: whole-collection questions, or answerable questions with each other group.

    An answer is right when it holds a gold answer. A question that was refused has no answer to judge and
    counts as wrong: only a run with an abstention threshold of 1 shows the effect of higher thresholds.
    Only groups with questions of both kinds are listed.
    """
    return {
        name: members
        for name, members in scored_questions(found).items()
        if {member.answerable for member in members} == {True, False}
    }


def scored_questions(found: SetRun) -> dict[str, list[ScoredQuestion]]:
    """As `outcomes_of`, also the groups whose questions are all of one kind, which may be empty."""
    outcomes = {_ANSWERS: _outcomes(found, _ANSWERS)}
    for name, group in _UNANSWERED.items():
        unanswered = _outcomes(found, group)
        outcomes[name] = [*_outcomes(found, _ANSWERABLE), *unanswered] if unanswered else []
    return outcomes


def operating_rows(found: SetRun) -> list[tuple[str, ...]]:
    """Table rows with the columns of `HEAD`: the gain of each false-refusal rate, for each kind of question."""
    rows = []
    for name, outcomes in outcomes_of(found).items():
        area = f"{area_under(outcomes):.3f}"
        curve = risk_coverage(outcomes)  # computed once for all shares
        points = [next(point for point in curve if point.false_refusals <= share) for share in FALSE_REFUSALS]
        rows += [(f"{name} (n={len(outcomes)})", area, *_cells(point)) for point in dict.fromkeys(points)]
    return rows


def risk_sections(run: Run) -> list[str]:
    """A section with a chart and a table for each set with abstention scores, or an empty one."""
    parts = []
    for found in run.sets:
        outcomes = outcomes_of(found)
        if outcomes:
            curves = {name: _thinned(risk_coverage(members)) for name, members in outcomes.items()}
            parts.append(figure(found.name, risk_coverage_chart(curves, title=f"risk and coverage of {found.name}")))
            parts.append(table(HEAD, operating_rows(found)))
    return [section("Risk and coverage", parts)]


def _outcomes(found: SetRun, group: str) -> list[ScoredQuestion]:
    contains = found.values.get(f"{group}/contains", {})
    refusals = found.values.get(f"{group}/refusal", {})
    return [
        ScoredQuestion(score=score, answerable=question in contains, correct=contains.get(question, 0.0) == 1)
        for question, score in found.abstention.get(group, {}).items()
        if question in contains or question in refusals
    ]


def _cells(point: OperatingPoint) -> tuple[str, ...]:
    threshold = "none" if point.threshold is None else f"{point.threshold:.3g}"
    shares = (point.false_refusals, point.true_refusals, point.coverage, point.risk)
    return (*(f"{share:.3f}" for share in shares), threshold)


def _thinned(points: tuple[OperatingPoint, ...]) -> list[OperatingPoint]:
    """Evenly spaced points, including the last."""
    step = -(-len(points) // _DRAWN)
    return list(reversed(points[::-1][::step]))
