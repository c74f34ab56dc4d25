"""The file of recorded cases, and what a case that differs from it looks like to a reader."""

import difflib
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("answers.jsonl.xz")
HOW_TO_RECORD = "Where the change is meant, record the answers again: python -m tests.golden"

_PRESET = 9 | lzma.PRESET_EXTREME


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a case: the status and the body of its response, and the rows that it wrote to the ledger."""

    case: str
    status: int
    body: str
    ledger: tuple[Mapping[str, Any], ...]


def read(path: Path = RECORDED) -> dict[str, Kept]:
    """The recorded cases by name."""
    found = {}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = json.loads(line)
            found[fields["case"]] = Kept(**{**fields, "ledger": tuple(fields["ledger"])})
    return found


def write(cases: Iterable[Kept], path: Path = RECORDED) -> None:
    """Replace the recorded cases; one line a case, sorted by name."""
    ordered = sorted(cases, key=lambda kept: kept.case)
    lines = (json.dumps(asdict(kept), ensure_ascii=False, separators=(",", ":")) for kept in ordered)
    with lzma.open(path, "wt", encoding="utf-8", newline="\n", preset=_PRESET) as file:
        file.writelines(f"{line}\n" for line in lines)


def differences(recorded: Mapping[str, Kept], found: Iterable[Kept], *, most: int) -> Iterator[str]:
    """A unified diff of each of the first `most` cases that differ, and the number of all of them."""
    count = 0
    for now in found:
        was = recorded.get(now.case)
        if now == was:
            continue
        count += 1
        if count <= most:
            before = ["(not recorded)"] if was is None else readable(was)
            names = (f"recorded/{now.case}", f"now/{now.case}")
            yield "\n".join(difflib.unified_diff(before, readable(now), *names, lineterm="", n=2))
    if count:
        yield f"{count} cases differ."


def readable(kept: Kept) -> list[str]:
    """A case as lines for a diff: JSON one value a line; where only its spacing differs the body is one line."""
    rows = [f"ledger: {json.dumps(row, ensure_ascii=False)}" for row in kept.ledger]
    return [f"status: {kept.status}", *_lines(kept.body), f"raw body: {len(kept.body)} characters", *rows]


def _lines(body: str) -> Iterator[str]:
    """The lines of a body; JSON in it, whole or behind the `data:` of an event, is indented."""
    for line in body.split("\n"):
        before, data = ("data: ", line.removeprefix("data: ")) if line.startswith("data: ") else ("", line)
        shown = _indented(data)
        yield f"{before}{shown[0]}"
        yield from shown[1:]


def _indented(text: str) -> list[str]:
    """JSON with one value a line, or the text itself; `<time>` is no JSON, so it is quoted for this."""
    for mask in ("<time>", "<ms>"):
        text = text.replace(f": {mask}", f':"{mask}"').replace(f":{mask}", f':"{mask}"')
    try:
        value = json.loads(text)
    except ValueError:
        return [text]
    return json.dumps(value, indent=1, ensure_ascii=False).split("\n") if isinstance(value, dict | list) else [text]
