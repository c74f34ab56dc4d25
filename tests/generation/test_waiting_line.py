"""generation.waiting_line: priorities, turns between users, and no starvation."""

from dataclasses import dataclass

from generation.waiting_line import WaitingLine


@dataclass(eq=False)
class Waiting:
    name: str
    user: str = "ann"
    priority: int = 0
    submitted_at: float = 0.0
    preempted: bool = False
    cached: int = 0


def order(*sequences: Waiting, now: float = 0.0, served: dict[str, int] | None = None) -> str:
    line: WaitingLine[Waiting] = WaitingLine()
    for sequence in sequences:
        line.add(sequence)
    for user, tokens in (served or {}).items():
        line.charge(user, tokens)
    return "".join(sequence.name for sequence in line.ranked(now, cached=lambda sequence: sequence.cached))


def test_one_users_sequences_go_in_order_of_arrival() -> None:
    assert order(Waiting("a"), Waiting("b"), Waiting("c")) == "abc"


def test_the_user_who_was_served_least_goes_first() -> None:
    ours = [Waiting(name, user="ann") for name in "ab"]

    assert order(*ours, Waiting("c", user="bob"), served={"ann": 100}) == "cab"


def test_a_user_who_was_idle_gains_no_credit_over_active_users() -> None:
    line: WaitingLine[Waiting] = WaitingLine()
    busy = Waiting("a", user="ann")
    line.add(busy)
    line.charge("ann", 1000)
    line.add(Waiting("b", user="bob"))
    line.charge("bob", 1)

    assert [waiting.name for waiting in line.ranked(0.0, cached=lambda _: 0)] == ["a", "b"]


def test_a_higher_priority_goes_first_and_waiting_makes_up_for_it() -> None:
    patient = Waiting("p", submitted_at=0.0)

    assert order(patient, Waiting("u", priority=1, submitted_at=4.0), now=4.0) == "up"
    assert order(patient, Waiting("u", priority=1, submitted_at=5.0), now=5.0) == "pu"


def test_the_longest_cached_prefix_overtakes_but_not_who_has_waited_long() -> None:
    assert order(Waiting("a"), Waiting("b", cached=500), now=1.0) == "ba"
    assert order(Waiting("a"), Waiting("b", cached=500, submitted_at=2.0), now=2.5) == "ab"


def test_a_sequence_that_ran_before_goes_before_all_others() -> None:
    assert order(Waiting("a", priority=3), Waiting("b", preempted=True)) == "ba"
