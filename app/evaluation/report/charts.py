"""Charts as inline SVG: no script, no font, colours from the page's style sheet so that light and dark both read."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 860
_LEFT = 230  # room for row labels
_RIGHT = 70  # room for the printed value
_ROW = 18
_GAP = 10
_TOP = 22
_LABEL_CHARS = 34
SERIES = 6  # colours the style sheet has


@dataclass(frozen=True, slots=True)
class Dot:
    """A value with its interval; `shown` is its printed text, `tip` its tooltip."""

    series: int
    value: float
    low: float
    high: float
    shown: str
    tip: str


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A label and its dots, one below the other."""

    label: str
    dots: tuple[Dot, ...]


def dot_chart(rows: Sequence[ChartRow], *, legend: Sequence[str], title: str, zero: bool = False) -> str:
    """Draws dots with whiskers, one group of lines per row.

    Args:
        rows: From top to bottom.
        legend: Names of the series, by number.
        title: Read out by screen readers.
        zero: The values are changes: the axis holds 0, marked by a line. Otherwise it is [0, 1], or
            [0, the largest] when values exceed 1.
    """
    dots = [dot for row in rows for dot in row.dots]
    if zero:
        reach = max([abs(end) for dot in dots for end in (dot.low, dot.high)], default=0) or 1.0
        low, high = -reach, reach
    else:
        low, high = 0.0, max([1.0, *(dot.high for dot in dots)])
    inner = _WIDTH - _LEFT - _RIGHT

    def x(value: float) -> float:
        return round(_LEFT + (min(max(value, low), high) - low) / (high - low) * inner, 1)

    ticks = [low + (high - low) * step / 4 for step in range(5)]
    body: list[str] = []
    y = _TOP + _GAP
    for row in rows:
        middle = y + _ROW * len(row.dots) / 2
        body.append(
            f'<text class="row" x="{_LEFT - 12}" y="{middle:.1f}" text-anchor="end" dominant-baseline="middle">'
            f"{escape(_cut(row.label))}<title>{escape(row.label)}</title></text>"
        )
        for dot in row.dots:
            at = y + _ROW / 2
            colour = f"s{dot.series % SERIES}"
            body.append(
                f'<g class="{colour}"><title>{escape(dot.tip)}</title>'
                f'<line class="whisker" x1="{x(dot.low)}" x2="{x(dot.high)}" y1="{at}" y2="{at}"/>'
                f'<circle cx="{x(dot.value)}" cy="{at}" r="5"/></g>'
                f'<text class="value" x="{_WIDTH - _RIGHT + 10}" y="{at}" dominant-baseline="middle">'
                f"{escape(dot.shown)}</text>"
            )
            y += _ROW
        y += _GAP
    grid = "".join(
        f'<line class="{"zero" if zero and not tick else "grid"}" x1="{x(tick)}" x2="{x(tick)}" y1="{_TOP}" y2="{y}"/>'
        f'<text class="tick" x="{x(tick)}" y="{_TOP - 8}" text-anchor="middle">{_tick(tick, signed=zero)}</text>'
        for tick in ticks
    )
    chart = f'<svg viewBox="0 0 {_WIDTH} {y + 4}" role="img" aria-label="{escape(title)}">{grid}{"".join(body)}</svg>'
    return _legend(legend) + chart


def histogram(values: Sequence[float], *, bins: int, title: str, unit: str) -> str:
    """Draws a histogram: `bins` equal ranges from 0 to the 99th percentile; larger values count in the last.

    Args:
        values: At least one, none negative.
        bins: How many bars.
        title: Read out by screen readers.
        unit: Printed behind the axis' numbers.
    """
    ordered = sorted(values)
    top = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] or 1.0
    counts = [0] * bins
    for value in ordered:
        counts[min(bins - 1, int(value / top * bins))] += 1
    height, bottom, width = 120, 24, _WIDTH / bins
    bars = "".join(
        f'<g class="s0"><title>{top * at / bins:,.0f}-{top * (at + 1) / bins:,.0f} {escape(unit)}: {count}</title>'
        f'<rect x="{at * width + 1:.1f}" y="{height - height * count / max(counts):.1f}" width="{width - 2:.1f}" '
        f'height="{height * count / max(counts):.1f}" rx="2"/></g>'
        for at, count in enumerate(counts)
    )
    ticks = "".join(
        f'<text class="tick" x="{_WIDTH * step / 4:.1f}" y="{height + 16}" text-anchor="{anchor}">'
        f"{top * step / 4:,.0f} {escape(unit)}</text>"
        for step, anchor in enumerate(("start", "middle", "middle", "middle", "end"))
    )
    return f'<svg viewBox="0 0 {_WIDTH} {height + bottom}" role="img" aria-label="{escape(title)}">{bars}{ticks}</svg>'


def _legend(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    items = "".join(f'<span class="s{at % SERIES}"><i></i>{escape(name)}</span>' for at, name in enumerate(names))
    return f'<p class="legend">{items}</p>'


def _tick(value: float, *, signed: bool) -> str:
    digits = 0 if abs(value) >= 10 else 2
    return f"{value:+,.{digits}f}" if signed and value else f"{value:,.{digits}f}"


def _cut(label: str) -> str:
    return label if len(label) <= _LABEL_CHARS else label[: _LABEL_CHARS - 1] + "…"
