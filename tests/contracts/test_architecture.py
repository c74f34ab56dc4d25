"""docs/ARCHITECTURE.md names only modules that exist, and file names say what is inside."""

import re
from pathlib import Path

from tests.contracts.architecture_lines import ARCHITECTURE, moved, named, places

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "ingestion", "retrieval", "generation", "migrations")


def modules() -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py" and "versions" not in path.parts
    }


def test_every_module_that_the_architecture_names_exists():
    named = set(
        re.findall(
            r"`((?:app|ingestion|retrieval|generation|migrations)/[\w/]+\.py)`",
            ARCHITECTURE.read_text(),
        )
    )

    assert named - modules() == set()


def test_no_file_is_a_bag_of_things():
    bags = {"utils", "helpers", "helper", "manager", "common", "misc", "base", "core"}

    assert [module for module in modules() if Path(module).stem in bags] == []


def test_every_line_that_the_architecture_names_defines_what_it_names():
    text = ARCHITECTURE.read_text(encoding="utf-8")
    found = named(text)

    assert len(found) == len(re.findall(r"`[\w/.]+:\d+`", text)) > 0, "a line is named without what it holds"
    wrong = {
        f"{name}, {path}:{line}": places(name, path) for name, path, line in found if line not in places(name, path)
    }
    assert wrong == {}, "python -m tests.contracts.architecture_lines moves them"


def test_lines_are_moved_after_the_code():
    path = "tests/contracts/architecture_lines.py"
    (line,) = places("named", path)

    assert moved(f"See `named` (`{path}:1`).") == f"See `named` (`{path}:{line}`)."
    assert moved(f"See `absent` (`{path}:1`).") == f"See `absent` (`{path}:1`)."
