"""`footnote table` makes a table from a file of questions, waits, and writes its CSV."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli.table import columns_of, filled, summary
from app.client import Client
from tests.app.cli.command_line import CommandLine

STATES = ("waiting", "asking", "answered", "unsure", "refused", "failed")


def body(state: str, **cells: int) -> dict[str, Any]:
    progress = {**dict.fromkeys(STATES, 0), **cells}
    return {
        "state": state,
        "progress": {**progress, "total": sum(progress.values())},
        "usage": {"total_tokens": 1234},
    }


def test_each_line_is_a_question_with_a_name_or_without() -> None:
    assert columns_of("What?\n\n Law | Which law? \nHow long?\r\n| odd") == [
        "What?",
        {"name": "Law", "question": "Which law?"},
        "How long?",
        "| odd",
    ]


@pytest.mark.parametrize("end", ["finished", "stopped"])
def test_it_waits_until_the_table_is_finished_or_stopped(end: str) -> None:
    states = [body("running", waiting=2), body("running", waiting=1, answered=1), body(end, answered=1, failed=1)]
    looks = iter(states)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=next(looks)))
    told: list[tuple[int, int]] = []
    waits: list[float] = []
    with httpx.Client(transport=transport, base_url="http://server") as http:
        found = filled(Client(http), "table_1", lambda _, done, total: told.append((done, total)), sleep=waits.append)

    assert found == states[-1]
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert waits == [1.0, 1.0]
    assert summary(found) == "2 cells: 1 answered, 1 failed. 1,234 tokens."


def test_what_cannot_be_asked_is_refused_in_words(footnote: CommandLine, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("How long?\n", encoding="utf-8")

    assert footnote.refused("table") == "Give a file of questions, or --id with a table to go on with."
    assert footnote.refused("table", str(questions)) == "There are no documents in this scope."
    assert footnote.refused("table", "--id", "table_9") == "There is no such table."
    questions.write_bytes(b"\xff\xfe")
    assert footnote.refused("table", str(questions)) == f"{questions} is not UTF-8."
