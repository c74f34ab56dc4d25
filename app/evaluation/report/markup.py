"""Pieces of the report's page. What is text is escaped; what is a chart or a piece already is passed on."""

from collections.abc import Iterable, Sequence
from html import escape

from app.evaluation.intervals import Difference, Estimate
from app.evaluation.measures import Measure
from app.evaluation.report.charts import Dot


def section(title: str, parts: Sequence[str]) -> str:
    """A titled section; nothing when it would be empty."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>" if parts else ""


def figure(title: str, chart: str) -> str:
    """A chart under its title."""
    return f"<figure><figcaption>{escape(title)}</figcaption>{chart}</figure>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text."""
    header = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def folded(summary: str, content: str) -> str:
    """A piece that opens on demand."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def dot(series: int, measure: Measure, found: Estimate) -> Dot:
    """An estimate with its interval."""
    spread = f"{measure.show(found.low)} to {measure.show(found.high)}, n = {found.n}"
    tip = f"{full_name(measure)}: {measure.show(found.value)} ({spread})"
    return Dot(series, found.value, found.low, found.high, measure.show(found.value), tip)


def change_row(name: str, measure: Measure, found: Difference) -> tuple[str, ...]:
    """A change as cells: whose, measure, before, now, change, interval, p, n."""
    return (
        name, full_name(measure), measure.show(found.before), measure.show(found.after),
        measure.show(found.change, signed=True),
        f"{measure.show(found.low, signed=True)} to {measure.show(found.high, signed=True)}",
        f"{found.p:.3f}", str(found.n),
    )  # fmt: skip


def variant_of(measure: Measure) -> str:
    """The variant as it stands behind a label."""
    return f"at {measure.variant} %" if measure.group == "context" else measure.variant


def full_name(measure: Measure) -> str:
    """Group, label and variant."""
    return f"{measure.group}: {measure.label} {variant_of(measure)}".strip()
