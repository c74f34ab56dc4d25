"""app.evaluation.report.page and app.evaluation.table show every figure and let nothing hostile through."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from app.evaluation.comparison import compare
from app.evaluation.record import Run
from app.evaluation.report.charts import ChartRow, Dot, dot_chart, histogram
from app.evaluation.report.page import html_report
from app.evaluation.table import tables
from tests.app.evaluation.runs import NDCG, example, run_of, scored, set_run

HOSTILE = """<script>alert(1)</script>"'><img src=x onerror=alert(1)><!-- </style></svg> [red]x[/red] &lt;"""


class Tags(HTMLParser):
    """Every element with its attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def hostile_page() -> str:
    values = {
        **scored(0, 0.5, 1),
        "retrieval/hybrid/latency": {"q0": 4.0, "q1": 5.0, "q2": 400.0},
        "context/50/spans": {"q0": 1.0},
        "answers/f1": {"q0": 0.25},
    }
    first = set_run(HOSTILE, values, examples=(example(HOSTILE),))
    run = run_of(first, set_run("other", scored(1)), settings={"embedder": HOSTILE})
    groups = {HOSTILE: first.summary}
    run = run.model_copy(
        update={"sets": [first.model_copy(update={"groups": groups, "notes": [HOSTILE]}), run.sets[1]]}
    )
    run = run.model_copy(update={"comparison": compare(run, run)})
    return html_report(run.model_copy(update={"by": HOSTILE}))


def test_hostile_text_is_shown_and_never_becomes_an_element() -> None:
    page = Tags(hostile_page())

    assert {tag for tag, _ in page.elements} & {"script", "img", "iframe", "link", "object", "a"} == set()
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.text.count(HOSTILE) >= 8


def test_the_page_needs_nothing_from_anywhere() -> None:
    page = hostile_page()

    loaded = [name for _, attributes in Tags(page).elements for name in attributes if name in {"src", "href"}]
    assert loaded == []
    assert "url(" not in page
    assert "@import" not in page
    policies = [attributes["content"] for tag, attributes in Tags(page).elements if "http-equiv" in attributes]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_every_figure_stands_in_the_page_with_its_interval_and_n() -> None:
    run = run_of(set_run("a", scored(0, 0.5, 1)))
    found = run.sets[0].summary[NDCG]

    text = Tags(html_report(run)).text

    assert "nDCG@10" in text
    assert f"{found.low:.3f} to {found.high:.3f}" in text
    assert "A note about a." in text


def test_a_comparison_shows_its_changes() -> None:
    before, after = run_of(set_run("a", scored(0, 0))), run_of(set_run("a", scored(1, 0)))
    run = after.model_copy(update={"comparison": compare(before, after)})

    assert "Change of nDCG@10 hybrid" in Tags(html_report(run)).text
    assert "+0.500" in Tags(html_report(run)).text


charts = re.compile(r"<svg.*?</svg>", re.DOTALL)


@settings(max_examples=30)
@given(
    dots=st.lists(
        st.tuples(st.floats(-1, 500), st.floats(-1, 500), st.floats(-1, 500)).map(sorted), min_size=1, max_size=5
    ),
    label=st.text(max_size=60).filter(lambda text: text.isprintable()),
    zero=st.booleans(),
)
def test_a_chart_is_well_formed_and_every_mark_lies_inside(dots: list[list[float]], label: str, zero: bool) -> None:
    row = ChartRow(label, tuple(Dot(at, value, low, high, "v", label) for at, (low, value, high) in enumerate(dots)))

    (svg,) = charts.findall(dot_chart([row, row], legend=("a", label), title=label, zero=zero))

    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    circles = list(root.iter("circle"))
    assert len(circles) == 2 * len(dots)
    assert all(0 <= float(mark.attrib["cx"]) <= width and 0 <= float(mark.attrib["cy"]) <= height for mark in circles)
    lines = [line for line in root.iter("line") if line.get("class") == "whisker"]
    assert all(float(line.attrib["x1"]) <= float(line.attrib["x2"]) for line in lines)


@settings(max_examples=30)
@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=200), bins=st.integers(1, 50))
def test_a_histogram_counts_every_value(values: list[float], bins: int) -> None:
    root = ElementTree.fromstring(histogram(values, bins=bins, title="t", unit="ms"))

    counted = [int((title.text or "").rsplit(" ", 1)[1]) for title in root.iter("title")]
    assert len(counted) == bins
    assert sum(counted) == len(values)


def test_the_terminal_shows_values_and_markup_stays_text() -> None:
    run = run_of(set_run("[red]a[/red]", scored(0, 0.5, 1)), set_run("b", scored(1)))
    run = run.model_copy(update={"comparison": compare(run, run)})
    shown = _shown(run, width=300)

    assert "[red]a[/red]" in shown
    assert re.search(r"hybrid nDCG@10 +0\.500 \[0\.000, 1\.000\] n=3 +1\.000 .* n=1 +0\.750", shown)
    assert "+0.000 [+0.000, +0.000] p=1.000" in shown


def test_groups_are_the_rows_of_a_table_that_fits_a_narrow_terminal() -> None:
    values = scored(0, 0.5, 1) | {"context/50/spans": {"q0": 1.0}, "context/50/tokens": {"q0": 90.0}}
    run = run_of(set_run("a", values))
    groups = {f"l{at}": run.sets[0].summary for at in range(12)}
    run = run.model_copy(update={"sets": [run.sets[0].model_copy(update={"groups": groups})]})
    shown = _shown(run, width=80)

    assert "a by lang: retrieval" in shown
    assert re.search(r"^l11 +3 +0\.500 *$", shown, re.MULTILINE)
    assert re.search(r"^l11 +1 +1\.000 *$", shown, re.MULTILINE), "spans, and no tokens"
    assert "…" not in shown


def _shown(run: Run, *, width: int) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        for table in tables(run):
            console.print(table)
    return captured.get()
