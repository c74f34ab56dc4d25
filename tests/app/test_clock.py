"""The clock of rows follows the machine's clock, never goes back, and never stands still; pauses double."""

from hypothesis import given
from hypothesis import strategies as st

from app.clock import SteadyClock, pause_after
from tests.app.usage.samples import Clock

STEPS = st.lists(
    st.tuples(
        st.floats(min_value=0, max_value=100_000),  # seconds that pass
        st.floats(min_value=-200_000, max_value=200_000),  # by which the machine's clock is then set
    ),
    max_size=30,
)


class Machine:
    """A machine's clock that can be set, and seconds that only pass."""

    def __init__(self) -> None:
        self.wall, self.ticks = Clock(), Clock(50.0)
        self.clock = SteadyClock(machine=self.wall, monotonic=self.ticks)

    def pass_by(self, seconds: float) -> None:
        self.wall.now += seconds
        self.ticks.now += seconds


def test_it_is_the_machines_clock_and_follows_it_forward() -> None:
    machine = Machine()

    machine.pass_by(10)
    assert machine.clock() == machine.wall.now
    machine.wall.now += 86_400
    assert machine.clock() == machine.wall.now


def test_put_back_it_runs_at_half_speed_until_the_machine_has_caught_up() -> None:
    machine = Machine()
    began = machine.clock()
    machine.wall.now -= 3600

    assert machine.clock() == began
    machine.pass_by(3600)
    assert machine.clock() == began + 1800
    machine.pass_by(3600)
    assert machine.clock() == machine.wall.now == began + 3600
    machine.pass_by(5)
    assert machine.clock() == machine.wall.now


@given(steps=STEPS)
def test_whatever_is_set_it_never_goes_back_and_passes_at_half_speed_at_least(
    steps: list[tuple[float, float]],
) -> None:
    machine = Machine()
    before = machine.clock()
    for seconds, jump in steps:
        machine.pass_by(seconds)
        machine.wall.now += jump
        now = machine.clock()
        assert now >= before
        assert now >= machine.wall.now
        machine.pass_by(seconds)
        assert machine.clock() - now >= seconds / 2 - 1e-3
        before = machine.clock()


def test_pauses_double_up_to_the_longest() -> None:
    pauses = [pause_after(failures, first_s=2.0, longest_s=300.0) for failures in (1, 2, 3, 8, 9, 10**6)]

    assert pauses == [2.0, 4.0, 8.0, 256.0, 300.0, 300.0]
