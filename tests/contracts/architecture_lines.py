"""The lines of code that docs/ARCHITECTURE.md names; run as a module, it moves them after the code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = ROOT / "docs/ARCHITECTURE.md"
_NAMED = re.compile(r"(`([\w.]+)`,? \(?`([\w/.]+):)(\d+)`")


def named(text: str) -> list[tuple[str, str, int]]:
    """What is named, its file and its line."""
    return [(name, path, int(number)) for _, name, path, number in _NAMED.findall(text)]


def places(name: str, path: str) -> list[int]:
    """The lines of a file that define what is named."""
    last = re.escape(name.rpartition(".")[2])
    defined = re.compile(rf"\s*(?:(?:async )?def|class) {last}\b|\s*{last}: ")
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return [at for at, line in enumerate(lines, start=1) if defined.match(line)]


def moved(text: str) -> str:
    """The text with the line of everything that its file defines once, or still on the line that it names."""

    def line(found: re.Match[str]) -> str:
        at = places(found[2], found[3])
        return found[0] if int(found[4]) in at or len(at) != 1 else f"{found[1]}{at[0]}`"

    return _NAMED.sub(line, text)


if __name__ == "__main__":
    ARCHITECTURE.write_text(moved(ARCHITECTURE.read_text(encoding="utf-8")), encoding="utf-8")
