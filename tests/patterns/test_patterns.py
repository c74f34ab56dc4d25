"""Every regular expression of the packages takes linear time on its worst inputs, or reads a bounded text."""

from pathlib import Path

import pytest

from app.answering.languages.question_kind import compared
from app.answering.understanding.documents.asking import named, wanted_overview
from ingestion.column_names import CellKind, kind_of
from tests.patterns.slow import CHARACTERS, longest_seconds, slow_texts
from tests.patterns.sources import Use, module_of, relative, sources, uses

# Rules that read short texts only: their module, a part of the pattern, the constant that limits the text, and how
# many times longer the text can be by then.
BUDGETS = {
    ("app/answering/languages/question_kind.py", "(?P<other>"): ("_LONGEST_COMPARED", 1),
    ("app/suggestions/amounts.py", "(?P<subject>"): ("_READ_CHARS", 1),
    ("app/suggestions/events.py", "(?P<subject>"): ("_READ_CHARS", 1),
    ("app/suggestions/lines.py", "(?P<"): ("_READ_CHARS", 1),
    ("app/suggestions/lines.py", "(?:What"): ("_READ_CHARS", 1),
    ("app/suggestions/meanings.py", "(?P<subject>"): ("_READ_CHARS", 1),
    ("app/suggestions/rows.py", "(?P<label>"): ("_MOST_ROW_CHARS", 1),
    ("ingestion/column_names.py", "Mio"): ("_KIND_CHARS", 1),
    ("ingestion/column_names.py", "https?"): ("_KIND_CHARS", 1),
}
BUDGET_S = 0.02


def budget_of(path: Path, use: Use) -> int | None:
    """The most characters that a pattern reads; None without a limit."""
    for (module, part), (constant, times) in BUDGETS.items():
        if module == relative(path) and part in str(use.pattern.pattern):
            return times * int(vars(module_of(path))[constant])
    return None


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_every_pattern_takes_linear_time(path: Path, pytestconfig: pytest.Config) -> None:
    """With `--exhaustive` on longer texts; the slow patterns of `test_checker` are found on the shorter ones."""
    characters = (4 if pytestconfig.getoption("exhaustive") else 1) * CHARACTERS
    unlimited = [use for use in uses(path) if budget_of(path, use) is None]

    assert [finding for use in unlimited for finding in slow_texts(use, characters)] == []


@pytest.mark.parametrize(("module", "part"), BUDGETS)
def test_a_pattern_of_a_bounded_text_takes_little_time(module: str, part: str) -> None:
    (path,) = [path for path in sources() if relative(path) == module]
    limited = [use for use in uses(path) if part in str(use.pattern.pattern)]

    assert limited, "a budget without a pattern"
    for use in limited:
        budget = budget_of(path, use)
        assert budget is not None
        taken, text = longest_seconds(use, budget)
        assert taken < BUDGET_S, f"{use.place}: {text} takes {1000 * taken:.1f} ms for {budget} characters"


def test_rules_of_bounded_texts_read_no_longer_ones() -> None:
    assert wanted_overview("summarise the report" + " " * 180) is not None
    assert wanted_overview("summarise the report" + " " * 181) is None
    assert named("report" + " " * 194) is not None
    assert named("report" + " " * 195) is None
    assert compared("compare a and " + "b" * 980) is not None
    assert compared("compare a and " + "b" * 990) is None
    assert kind_of("1" * 100) is CellKind.NUMBER
    assert kind_of("1" * 101) is CellKind.WORDS
