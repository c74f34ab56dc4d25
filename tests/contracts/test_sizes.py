"""No file is too long to read at once, and few modules are too small to stand alone."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "ingestion", "retrieval", "generation")
MOST_LINES, FEW_LINES, MOST_SMALL, MOST_FLAT = 400, 60, 60, 8
PARTS_OF_THE_REPOSITORY = (*PACKAGES, "migrations", "tests", "docker")


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" not in path.parts:
                yield path


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_400_lines():
    too_long = {str(path.relative_to(ROOT)): lines_of(path) for path in sources(*PARTS_OF_THE_REPOSITORY)}

    assert {name: lines for name, lines in too_long.items() if lines > MOST_LINES} == {}


def test_at_most_60_modules_are_shorter_than_60_lines():
    small = [path for path in sources(*PACKAGES) if path.name != "__init__.py" and lines_of(path) < FEW_LINES]

    assert len(small) <= MOST_SMALL, [str(path.relative_to(ROOT)) for path in small]


def test_at_most_8_modules_of_the_application_lie_outside_its_packages():
    flat = [path.name for path in (ROOT / "app").glob("*.py") if path.name != "__init__.py"]

    assert len(flat) <= MOST_FLAT, flat
