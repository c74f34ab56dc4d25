"""FAULTS.md C1 and C2 over real sockets: clients who hang up, and clients who hardly read."""

from pathlib import Path

from tests.bench.service.disconnects import measured


def test_c1_after_many_have_hung_up_nothing_is_held_and_the_others_read_what_they_would_have(tmp_path: Path) -> None:
    figures = measured(tmp_path / "data", requests=40, seed=3, in_turns=True)

    assert not any(figures.leaks.values()), figures.leaks
    assert figures.other_outputs == 0
    assert figures.rows["chat client_abort"] > 0, "some left in the middle"
    assert figures.acts["stay"] > 0
    assert not any(name.endswith("reserved") for name in figures.rows)
