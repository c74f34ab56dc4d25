"""What SECURITY.md and docs/RELIABILITY.md say of tests and files is so."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = (ROOT / "docs" / "RELIABILITY.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PLACES = {*(path.name for path in ROOT.iterdir()), "tests"}


@cache
def files_by_number() -> dict[str, set[str]]:
    """For each fault the test files, below `tests/`, with a test of its number."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for number in re.findall(
            r"^\s*(?:async )?def test_([a-f]\d+)_", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            found.setdefault(number.upper(), set()).add(path.relative_to(ROOT / "tests").as_posix())
    return found


def listed() -> dict[str, set[str]]:
    """The files that the table of faults names for each of them."""
    rows = re.findall(r"^\| ([A-F]\d+) \|.*\| ([^|]*) \|$", FAULTS, re.MULTILINE)
    return {number: set(re.findall(r"`([^`]+\.py)`", cell)) for number, cell in rows}


def named_paths(text: str) -> set[str]:
    """Code spans and links of a page that begin with a file or folder of the repository."""
    spans = re.findall(r"`([\w./-]+)`", text) + re.findall(r"\]\(([\w./-]+)\)", text)
    return {span for span in spans if span.split("/")[0] in PLACES}


def test_the_table_names_every_fault_of_the_list() -> None:
    kinds = {"A": 12, "B": 8, "C": 13, "D": 12, "E": 12, "F": 9}

    assert set(listed()) >= {f"{kind}{number}" for kind, most in kinds.items() for number in range(1, most + 1)}


@pytest.mark.parametrize("number", sorted(listed()))
def test_a_fault_has_tests_by_its_number_in_exactly_the_files_the_table_names(number: str) -> None:
    assert listed()[number]
    assert files_by_number().get(number, set()) == listed()[number]


def test_each_test_by_a_number_is_of_a_fault_in_the_table() -> None:
    assert set(files_by_number()) <= set(listed())


def test_the_files_that_the_security_page_names_exist() -> None:
    found = named_paths(SECURITY)

    assert "tests/app/answering/test_fences.py" in found
    assert [path for path in sorted(found) if not (ROOT / path).exists()] == []


def test_the_decisions_that_the_security_page_names_exist() -> None:
    for number in re.findall(r"ADR (\d{4})", SECURITY):
        assert list((ROOT / "docs" / "adr").glob(f"{number}-*.md")), number


def test_the_settings_that_the_security_page_names_exist() -> None:
    settings = (ROOT / ".env.example").read_text(encoding="utf-8")

    assert [name for name in set(re.findall(r"FOOTNOTE_[A-Z_]+", SECURITY)) if name not in settings] == []


def test_the_tests_that_the_security_page_names_exist() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))

    for name in re.findall(r"`(test_\w+)`", SECURITY):
        assert f"def {name}(" in sources, name
