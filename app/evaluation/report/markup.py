"""HTML fragments of the report and its style sheet. Text is escaped; charts and fragments are inserted unchanged."""

from collections.abc import Iterable, Sequence
from html import escape

from app.evaluation.intervals import Difference, Estimate
from app.evaluation.measures import Measure
from app.evaluation.report.charts import Dot


def section(title: str, parts: Sequence[str]) -> str:
    """A titled section, or an empty string without content."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>" if parts else ""


def figure(title: str, chart: str) -> str:
    """A chart with its title."""
    return f"<figure><figcaption>{escape(title)}</figcaption>{chart}</figure>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text."""
    header = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def folded(summary: str, content: str) -> str:
    """A collapsible fragment."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def dot(series: int, measure: Measure, found: Estimate) -> Dot:
    """An estimate with its interval."""
    spread = f"{measure.show(found.low)} to {measure.show(found.high)}, n = {found.n}"
    tip = f"{full_name(measure)}: {measure.show(found.value)} ({spread})"
    return Dot(series, found.value, found.low, found.high, measure.show(found.value), tip)


def change_row(name: str, measure: Measure, found: Difference) -> tuple[str, ...]:
    """The table cells of a change: set, measure, before, after, change, interval, p, n."""
    return (
        name, full_name(measure), measure.show(found.before), measure.show(found.after),
        measure.show(found.change, signed=True),
        f"{measure.show(found.low, signed=True)} to {measure.show(found.high, signed=True)}",
        f"{found.p:.3f}", str(found.n),
    )  # fmt: skip


def variant_of(measure: Measure) -> str:
    """The suffix of a label that names the variant."""
    return f"at {measure.variant} %" if measure.group == "context" else measure.variant


def full_name(measure: Measure) -> str:
    """Group, label and variant."""
    return f"{measure.group}: {measure.label} {variant_of(measure)}".strip()


STYLE = """
:root { color-scheme: light dark; --ink: #1d2530; --soft: #66707d; --paper: #fbfaf7; --card: #fff; --line: #e3e0d8;
  --c0: #1f6feb; --c1: #d9730d; --c2: #2f8f5b; --c3: #a03fb0; --c4: #c0392b; --c5: #5f6b7a; --good: #2f8f5b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #98a2b0; --paper: #14171c; --card: #1c2027;
  --line: #2e343d; --c0: #6ea8fe; --c1: #f0a35e; --c2: #6fcf97; --c3: #d58be3; --c4: #ff8577; --c5: #a9b4c2;
  --good: #6fcf97; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 32px 20px 80px; }
h1 { font: 600 30px/1.2 Georgia, serif; margin: 0; }
h2 { font: 600 21px/1.3 Georgia, serif; margin: 44px 0 10px; overflow-wrap: anywhere; }
h3 { font-size: 15px; margin: 26px 0 8px; }
header p, small, .note, figcaption, .legend, summary { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin-top: 24px; }
.card, figure, .example { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.card { padding: 14px 16px; display: flex; flex-direction: column; }
.card b { font: 600 28px/1.2 Georgia, serif; font-variant-numeric: tabular-nums; }
figure { margin: 0 0 14px; padding: 14px 18px; }
figcaption { font-weight: 600; margin-bottom: 4px; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .tick { fill: var(--soft); font-size: 11px; }
svg .value { font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--line); } svg .zero { stroke: var(--soft); stroke-dasharray: 3 3; }
svg .whisker { stroke-width: 3; stroke-linecap: round; opacity: .4; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); }
.s3 { --c: var(--c3); } .s4 { --c: var(--c4); } .s5 { --c: var(--c5); }
svg circle, svg rect { fill: var(--c); } svg line.whisker { stroke: var(--c); }
.legend { margin: 0 0 4px; font-size: 13px; } .legend span { margin-right: 16px; white-space: nowrap; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 5px; background: var(--c);
  margin-right: 6px; }
details { margin: 10px 0; } summary { cursor: pointer; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; margin-top: 8px; }
th { text-align: left; color: var(--soft); font-weight: 600; }
td, th { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
.example { padding: 12px 18px; margin-bottom: 12px; overflow-wrap: anywhere; }
.example p { margin: 6px 0; font-size: 14px; }
.example b { color: var(--soft); font-weight: 600; font-size: 12px; margin-right: 6px; }
.passage { padding-left: 10px; border-left: 3px solid var(--line); } .passage.hit { border-left-color: var(--good); }
blockquote { margin: 0 0 8px; font: 17px/1.4 Georgia, serif; }
"""
