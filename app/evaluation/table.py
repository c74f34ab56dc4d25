"""Formats a run as tables for a terminal."""

from collections.abc import Iterator, Mapping

from rich.table import Table
from rich.text import Text

from app.evaluation.intervals import Difference, Estimate
from app.evaluation.measures import Measure, measures_of
from app.evaluation.record import Run, RunComparison
from app.evaluation.report.answer_report import HEAD, operating_rows

_OVERALL = "mean of sets"
_HEADLINES = frozenset(
    {"ndcg@10", "recall@10", "spans", "documents", "f1", "exact_match", "citation_precision", "refusal"}
)
_TITLES = {
    "retrieval": "Retrieval",
    "context": "Context after compression",
    "answers": "Answers",
    "presented": "Answers from presented documents",
    "extractive": "The extractive reader on the same contexts",
}


def tables(run: Run) -> Iterator[Table]:
    """One table per kind of measure: measures as rows, sets as columns, and the mean of several sets."""
    measures = _measures(run)
    summaries: list[tuple[str, Mapping[str, Estimate]]] = [(found.name, found.summary) for found in run.sets]
    if len(run.sets) > 1:
        summaries.append((_OVERALL, run.overall))
    for group, title in _TITLES.items():
        chosen = [measure for measure in measures.values() if measure.group == group]
        if chosen:
            table = _table(title, [name for name, _ in summaries])
            for measure in chosen:
                cells = [_estimated(measure, summary.get(measure.key)) for _, summary in summaries]
                table.add_row(_name(measure), *cells)
            yield table
    if any(found.against_floor for found in run.sets):
        yield _changes_table(
            "Model less extractive reader", {found.name: found.against_floor for found in run.sets}, measures
        )
    for found in run.sets:
        if rows := operating_rows(found):
            table = _table(f"{found.name}: risk and coverage", list(HEAD))
            for row in rows:
                table.add_row(Text(""), *map(Text, row))
            yield table
    if run.by is not None:
        yield from _grouped(run, measures)
    if run.comparison is not None:
        yield _compared(run.comparison, measures)


def _grouped(run: Run, measures: Mapping[str, Measure]) -> Iterator[Table]:
    """One table per kind of measure: groups as rows, headlines as columns. Intervals are in the report."""
    for found in run.sets:
        for kind, title in _TITLES.items():
            keys = [key for key in found.summary if measures[key].group == kind and key.split("/")[-1] in _HEADLINES]
            if not found.groups or not keys:
                continue
            table = _table(
                f"{found.name} by {run.by}: {title.lower()}", ["n", *(str(_name(measures[key])) for key in keys)]
            )
            for group, summary in found.groups.items():
                shown = [summary.get(key) for key in keys]
                count = max((estimate.n for estimate in shown if estimate is not None), default=0)
                cells = [
                    Text("–", style="dim") if estimate is None else Text(measures[key].show(estimate.value))
                    for key, estimate in zip(keys, shown, strict=True)
                ]
                table.add_row(Text(group), Text(str(count)), *cells)
            yield table


def _compared(comparison: RunComparison, measures: Mapping[str, Measure]) -> Table:
    columns: dict[str, Mapping[str, Difference]] = dict(comparison.sets)
    if len(columns) > 1:
        columns[_OVERALL] = comparison.overall
    return _changes_table(f"Change since the run of {comparison.before}", columns, measures)


def _changes_table(
    title: str, columns: Mapping[str, Mapping[str, Difference]], measures: Mapping[str, Measure]
) -> Table:
    """One row for each measure that any column has, in the order of the measures."""
    table = _table(title, list(columns))
    for key, measure in measures.items():
        if any(key in changes for changes in columns.values()):
            table.add_row(_name(measure), *(_changed(measure, changes.get(key)) for changes in columns.values()))
    return table


def _measures(run: Run) -> dict[str, Measure]:
    keys = dict.fromkeys(key for found in run.sets for key in found.values)
    return {measure.key: measure for measure in measures_of(keys)}


def _table(title: str, columns: list[str]) -> Table:
    table = Table(title=Text(title), box=None, pad_edge=False, title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(Text(column))
    return table


def _name(measure: Measure) -> Text:
    variant = f"{measure.variant} %" if measure.group == "context" else measure.variant
    return Text(f"{variant} {measure.label}".strip())


def _estimated(measure: Measure, found: Estimate | None) -> Text:
    if found is None:
        return Text("–", style="dim")
    spread = f" [{measure.show(found.low)}, {measure.show(found.high)}] n={found.n}"
    return Text.assemble(measure.show(found.value), (spread, "dim"))


def _changed(measure: Measure, found: Difference | None) -> Text:
    """Colours a change green or red where its interval excludes 0."""
    if found is None:
        return Text("–", style="dim")
    style = ""
    if found.low > 0 or found.high < 0:
        style = "green" if (found.change > 0) == measure.higher_is_better else "red"
    spread = f" [{measure.show(found.low, signed=True)}, {measure.show(found.high, signed=True)}] p={found.p:.3f}"
    return Text.assemble((measure.show(found.change, signed=True), style), (spread, "dim"))
