"""app.backoff doubles pauses up to the longest."""

from app.backoff import pause_after


def test_pauses_double_up_to_the_longest() -> None:
    pauses = [pause_after(failures, first_s=2.0, longest_s=300.0) for failures in (1, 2, 3, 8, 9, 10**6)]

    assert pauses == [2.0, 4.0, 8.0, 256.0, 300.0, 300.0]
