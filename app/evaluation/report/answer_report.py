"""The report's pages about answers: the model beside the extractive reader."""

from collections.abc import Mapping, Sequence

from app.evaluation.intervals import Estimate
from app.evaluation.measures import Measure, measures_of
from app.evaluation.record import Run, SetRun
from app.evaluation.report.charts import Row, dot_chart
from app.evaluation.report.markup import change_row, dot, figure, folded, section, table

_MODEL, _READER = "model", "extractive reader"
_TITLES = {"answers": "Answers", "presented": "Answers from presented documents"}


def answer_sections(run: Run) -> list[str]:
    """A section for answers to people's questions, one for answers from presented documents; each may be empty."""
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


def _rows(found: SetRun, measures: Sequence[Measure]) -> list[Row]:
    """A measure a row: the model's figure, and the reader's where it has one."""
    summary: Mapping[str, Estimate] = found.summary
    rows = []
    for measure in measures:
        both = [measure.key, measure.floor or ""]
        dots = tuple(dot(series, measure, summary[key]) for series, key in enumerate(both) if key in summary)
        if measure.key in summary:
            rows.append(Row(measure.label, dots))
    return rows


def _floor_table(run: Run, group: str) -> list[str]:
    """Every difference between the model and the reader, paired by question."""
    rows = [
        change_row(found.name, measure, found.against_floor[measure.key])
        for found in run.sets
        for measure in measures_of(found.values)
        if measure.group == group and measure.key in found.against_floor
    ]
    head = ("set", "measure", _READER, _MODEL, "difference", "95 % interval", "p", "n")
    return [folded(f"The model less the {_READER}", table(head, rows))] if rows else []
