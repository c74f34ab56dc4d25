"""FAULTS.md C3 over real sockets, in short: many times more clients than places."""

from pathlib import Path

from tests.bench.service.refusals import measured


def test_c3_of_too_many_clients_some_are_refused_and_nobody_who_came_in_is_cut(tmp_path: Path) -> None:
    figures = measured(tmp_path / "data", seconds=1.0)

    assert figures.statuses == {200, 503}
    assert figures.answered > 0, "who is refused keeps nobody from being answered"
    assert figures.cut == 0, "every stream ends with its last event"
