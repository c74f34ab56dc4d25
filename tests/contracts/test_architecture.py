"""docs/ARCHITECTURE.md names only modules that exist, and file names say what is inside."""

import re
from pathlib import Path

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
            (ROOT / "docs/ARCHITECTURE.md").read_text(),
        )
    )

    assert named - modules() == set()


def test_no_file_is_a_bag_of_things():
    bags = {"utils", "helpers", "helper", "manager", "common", "misc", "base", "core"}

    assert [module for module in modules() if Path(module).stem in bags] == []


def test_every_line_that_the_architecture_names_holds_what_it_names():
    architecture = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w.]+)`,? \(?`([\w/.]+):(\d+)`", architecture)

    wrong = {}
    for name, path, number in named:
        word = rf"\b{name.rpartition('.')[2]}\b"
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        if re.search(word, lines[int(number) - 1]) is None:
            wrong[f"{name}, {path}:{number}"] = [at for at, line in enumerate(lines, 1) if re.search(word, line)]
    assert len(named) == len(re.findall(r"`[\w/.]+:\d+`", architecture)) > 0, "a line is named without what it holds"
    assert wrong == {}
