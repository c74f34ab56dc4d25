"""A run as one self-contained HTML page: charts first, tables below, and the questions that went wrong.

Everything that comes from a question set or a model is escaped: documents are hostile.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from app.evaluation.intervals import Difference
from app.evaluation.measures import Measure, measures_of
from app.evaluation.record import Example, ExampleDocument, Run, RunComparison, SetRun
from app.evaluation.report.answer_report import answer_sections, risk_sections
from app.evaluation.report.charts import ChartRow, Dot, dot_chart, histogram
from app.evaluation.report.markup import STYLE, change_row, dot, figure, folded, full_name, section, table, variant_of

_OVERALL = "all sets (mean)"


def html_report(run: Run) -> str:
    """The page."""
    sections = [
        _head(run),
        _headlines(run),
        _changes(run),
        _retrieval(run),
        _context(run),
        *answer_sections(run),
        *risk_sections(run),
        _groups(run),
        *(_set(found) for found in run.sets),
        _facts(run),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Footnote evaluation</title><style>{STYLE}</style></head><body><main>"
        + "\n".join(section for section in sections if section)
        + "</main></body></html>\n"
    )


def _head(run: Run) -> str:
    sets = ", ".join(found.name for found in run.sets)
    return f"<header><h1>Footnote evaluation</h1><p>{escape(sets)} · {escape(run.created_at)}</p></header>"


def _headlines(run: Run) -> str:
    """The headline figures."""
    wanted = ("ndcg@10", "recall@10", "spans", "answers", "f1", "citation_precision", "refusal")
    cards: list[str] = []
    for measure in measures_of(_value_keys(run.sets)):
        name = measure.values.rsplit("/", 1)[-1]
        ours = measure.group != "extractive"
        first_mode = measure.group != "retrieval" or measure.variant == run.options["modes"].split(", ", maxsplit=1)[0]
        half = measure.group != "context" or measure.variant == "50"
        if name in wanted and ours and first_mode and half:
            found = run.overall[measure.key]
            variant = {
                "context": f" at {measure.variant} % of the tokens",
                "presented": f", {measure.variant}",
            }.get(measure.group, "")
            cards.append(
                f'<div class="card"><b>{measure.show(found.value)}</b><span>{escape(measure.label + variant)}</span>'
                f"<small>{measure.show(found.low)} to {measure.show(found.high)} · n = {found.n}</small></div>"
            )
    return f'<section class="cards">{"".join(cards)}</section>'


def _retrieval(run: Run) -> str:
    modes = _variants(run, "retrieval")
    parts = []
    for name in ("ndcg@10", "recall@10", "span"):
        rows = _rows(run, [f"retrieval/{mode}/{name}" for mode in modes])
        if rows:
            parts.append(figure(_label(run, f"retrieval/{modes[0]}/{name}"), dot_chart(rows, legend=modes, title=name)))
    waits = (
        [value for found in run.sets for value in found.values.get(f"retrieval/{modes[0]}/latency", {}).values()]
        if modes
        else []
    )
    if waits:
        parts.append(figure("Search latency", histogram(waits, bins=40, title="search latency", unit="ms")))
    return section("Retrieval", parts)


def _context(run: Run) -> str:
    shares = _variants(run, "context")
    parts = []
    for name in ("spans", "answers", "words", "documents"):
        rows = _rows(run, [f"context/{share}/{name}" for share in shares])
        if rows:
            chart = dot_chart(rows, legend=[f"{share} % of the tokens" for share in shares], title=name)
            parts.append(figure(_label(run, f"context/{shares[0]}/{name}"), chart))
    return section("Context after compression", parts)


def _groups(run: Run) -> str:
    """Scores by metadata value, one row per value."""
    parts = []
    for found in run.sets:
        keys = [key for key in found.summary if key.endswith(("/ndcg@10", "/f1")) or key == "context/50/spans"]
        for measure in (measure for measure in measures_of(found.values) if measure.key in keys):
            rows = [
                ChartRow(value, (dot(0, measure, summary[measure.key]),))
                for value, summary in found.groups.items()
                if measure.key in summary
            ]
            if rows:
                title = f"{found.name}: {measure.label} {measure.variant}".strip()
                parts.append(figure(title, dot_chart(rows, legend=(), title=title)))
    return section(f"By {run.by}", parts)


def _changes(run: Run) -> str:
    if run.comparison is None:
        return ""
    comparison = run.comparison
    parts = [f'<p class="note">{escape(note)}</p>' for note in comparison.notes]
    measures = {measure.key: measure for measure in measures_of(_value_keys(run.sets))}
    for key in comparison.overall:
        if measures[key].unit != "share" or not key.endswith(("/ndcg@10", "/spans", "/answers", "/f1", "/refusal")):
            continue
        rows = [
            ChartRow(
                name,
                (
                    Dot(
                        0,
                        found.change,
                        found.low,
                        found.high,
                        f"{found.change:+.3f}",
                        f"p = {found.p:.3f}, n = {found.n}",
                    ),
                ),
            )
            for name, changes in _changes_by_set(comparison)
            if (found := changes.get(key)) is not None
        ]
        measure = measures[key]
        title = f"{measure.label} {variant_of(measure)}".strip()
        parts.append(figure(f"Change of {title}", dot_chart(rows, legend=(), title=title, zero=True)))
    parts.append(_change_table(comparison, measures))
    return section(f"Against the run of {comparison.before}", parts)


def _changes_by_set(comparison: RunComparison) -> list[tuple[str, Mapping[str, Difference]]]:
    """Changes by set; the mean of several sets is last."""
    of_sets: list[tuple[str, Mapping[str, Difference]]] = [*comparison.sets.items()]
    return of_sets if len(of_sets) == 1 else [*of_sets, (_OVERALL, comparison.overall)]


def _change_table(comparison: RunComparison, measures: Mapping[str, Measure]) -> str:
    rows = [
        change_row(name, measures[key], found)
        for name, changes in _changes_by_set(comparison)
        for key, found in changes.items()
    ]
    head = ("set", "measure", "before", "now", "change", "95 % interval", "p", "n")
    return folded("Every change", table(head, rows))


def _set(found: SetRun) -> str:
    parts = [f'<p class="note">{escape(note)}</p>' for note in found.notes]
    rows = [
        (
            full_name(measure),
            measure.show(figure.value),
            f"{measure.show(figure.low)} to {measure.show(figure.high)}",
            str(figure.n),
        )
        for measure in measures_of(found.values)
        if (figure := found.summary.get(measure.key)) is not None
    ]
    parts.append(folded("Every figure", table(("measure", "value", "95 % interval", "n"), rows)))
    for kind, heading in (("retrieval", "Worst rankings"), ("answer", "Worst answers")):
        examples = [example for example in found.examples if example.kind == kind]
        if examples:
            parts.append(f"<h3>{heading}</h3>" + "".join(map(_example, examples)))
    return section(f"{found.name} ({found.documents:,} documents, {found.questions:,} questions)", parts)


def _example(example: Example) -> str:
    name = "nDCG@10" if example.kind == "retrieval" else "F1"
    parts = [f"<blockquote>{escape(example.question)} <small>{name} {example.score:.2f}</small></blockquote>"]
    if example.answers:
        parts.append(f"<p><b>wanted</b> {escape(' / '.join(example.answers))}</p>")
    if example.answer is not None:
        parts.append(f"<p><b>said</b> {escape(example.answer)}</p>")
    parts += [_passage("gold", passage) for passage in example.gold]
    parts += [_passage(f"found {place}", passage) for place, passage in enumerate(example.found, start=1)]
    return f'<article class="example">{"".join(parts)}</article>'


def _passage(what: str, passage: ExampleDocument) -> str:
    mark = " hit" if passage.gold else ""
    return (
        f'<p class="passage{mark}"><b>{escape(what)}</b> <i>{escape(passage.title or passage.id)}</i> '
        f"{escape(passage.text)}</p>"
    )


def _facts(run: Run) -> str:
    rows = [*run.versions.items(), *run.settings.items(), *run.options.items()]
    return section("What was run", [table(("name", "value"), rows)])


def _rows(run: Run, keys: Sequence[str]) -> list[ChartRow]:
    """One row a set, one dot a key (a series each), the mean of several sets last."""
    measures = {measure.key: measure for measure in measures_of(_value_keys(run.sets))}
    summaries = [(found.name, found.summary) for found in run.sets]
    if len(run.sets) > 1:
        summaries.append((_OVERALL, run.overall))
    rows = []
    for name, summary in summaries:
        dots = tuple(dot(series, measures[key], summary[key]) for series, key in enumerate(keys) if key in summary)
        if dots:
            rows.append(ChartRow(name, dots))
    return rows


def _variants(run: Run, group: str) -> list[str]:
    found = (measure.variant for measure in measures_of(_value_keys(run.sets)) if measure.group == group)
    return list(dict.fromkeys(found))


def _value_keys(sets: Iterable[SetRun]) -> list[str]:
    return list(dict.fromkeys(key for found in sets for key in found.values))


def _label(run: Run, key: str) -> str:
    return next(measure.label for measure in measures_of(_value_keys(run.sets)) if measure.key == key)
