"""docs/ARCHITECTURE.md maps every module, and nothing that is not there."""

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


def test_every_module_is_on_the_map():
    mapped = set(
        re.findall(
            r"`((?:app|ingestion|retrieval|generation|migrations)/[\w/]+\.py)`",
            (ROOT / "docs/ARCHITECTURE.md").read_text(),
        )
    )

    assert modules() - mapped == set(), "modules without a place on the map"
    assert mapped - modules() == set(), "places on the map without a module"


def test_no_file_is_a_bag_of_things():
    bags = {"utils", "helpers", "helper", "manager", "common", "misc", "base", "core"}

    assert [module for module in modules() if Path(module).stem in bags] == []
