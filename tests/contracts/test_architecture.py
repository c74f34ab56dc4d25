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
