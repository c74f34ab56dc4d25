"""Risk against coverage as inline SVG, in the report's colours."""

from collections.abc import Mapping, Sequence
from html import escape

from app.evaluation.report.charts import SERIES
from app.evaluation.report.markup import STYLE
from app.evaluation.risk_coverage import OperatingPoint

_WIDTH, _HEIGHT = 860, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 170, 14, 40  # the right holds the curves' names


def risk_coverage_chart(curves: Mapping[str, Sequence[OperatingPoint]], *, title: str) -> str:
    """Draws a line for each curve: coverage on the x-axis, risk on the y-axis, both from 0 to 1.

    Args:
        curves: Points by the curve's name, coverage rising; named at their right end, pushed apart.
        title: Read out by screen readers.
    """
    grid = "".join(_tick(share / 4) for share in range(5))
    lines, names, above = [], [], -1e9
    ends = sorted(range(len(curves)), key=lambda at: -[*curves.values()][at][-1].risk)
    for at in ends:
        name, points = [*curves.items()][at]
        colour = f"s{at % SERIES}"
        drawn = [point for point in points if point.coverage > 0]  # nothing answered has no risk
        path = " ".join(f"{_x(point.coverage)},{_y(point.risk)}" for point in drawn)
        dots = "".join(
            f'<circle cx="{_x(point.coverage)}" cy="{_y(point.risk)}" r="3"><title>{escape(_tip(name, point))}</title>'
            "</circle>"
            for point in drawn
        )
        lines.append(
            f'<g class="{colour}"><polyline style="fill:none;stroke:var(--c);stroke-width:2" points="{path}"/>'
            f"{dots}</g>"
        )
        above = max(above + 16, _y(points[-1].risk))
        names.append(
            f'<g class="{colour}"><text class="value" style="fill:var(--c)" x="{_WIDTH - _RIGHT + 10}" y="{above:.1f}" '
            f'dominant-baseline="middle">{escape(name)}</text></g>'
        )
    axes = (
        f'<text class="tick" x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 4}" text-anchor="middle">coverage</text>'
        f'<text class="tick" x="12" y="{(_TOP + _HEIGHT - _BOTTOM) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 12 {(_TOP + _HEIGHT - _BOTTOM) / 2})">risk</text>'
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{grid}{axes}{''.join(lines)}{''.join(names)}</svg>"
    )


def picture(chart: str) -> str:
    """A chart as a file of its own, with the report's style and paper."""
    style = "".join(line for line in STYLE.splitlines(keepends=True) if not line.startswith(("body", "main", "*")))
    paper = '<rect width="100%" height="100%" style="fill:var(--card)"/>'
    opened, inner = chart.split(">", 1)
    return f'{opened} xmlns="http://www.w3.org/2000/svg"><style>{style}</style>{paper}{inner}\n'


def _tick(share: float) -> str:
    x, y = _x(share), _y(share)
    return (
        f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text class="tick" x="{x}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{share:.2f}</text>'
        f'<text class="tick" x="{_LEFT - 6}" y="{y}" text-anchor="end" dominant-baseline="middle">{share:.2f}</text>'
    )


def _tip(name: str, point: OperatingPoint) -> str:
    threshold = "nothing refused" if point.threshold is None else f"refused from {point.threshold:.3g}"
    return (
        f"{name}, {threshold}: coverage {point.coverage:.3f}, risk {point.risk:.3f}, "
        f"answerable refused {point.false_refusals:.3f}, unanswerable refused {point.true_refusals:.3f}"
    )


def _x(coverage: float) -> float:
    return round(_LEFT + coverage * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(risk: float) -> float:
    return round(_HEIGHT - _BOTTOM - risk * (_HEIGHT - _TOP - _BOTTOM), 1)
