"""app.admission.quotas: changed limits apply at once in this process and within a second in others."""

import threading

from app.admission.quotas import UNLIMITED, OverriddenQuotas, Override, Quota
from app.errors import StoreUnavailable
from app.types import Principal, Role
from tests.app.usage.samples import Clock

ALICE = Principal("t1", "alice", "k1", Role.MEMBER)
TWO = Quota(requests_per_minute=2)


class Stored:
    """Overrides that somebody else may change."""

    def __init__(self) -> None:
        self.now: tuple[Override, ...] = ()
        self.fails = False
        self.reads = 0
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self) -> tuple[Override, ...]:
        self.gate.wait(30)
        self.reads += 1
        if self.fails:
            raise StoreUnavailable("not now")
        return self.now


def test_a_change_by_another_process_holds_within_a_second():
    stored, clock = Stored(), Clock(1000.0)
    quotas = OverriddenQuotas(stored, key=UNLIMITED, tenant=UNLIMITED, clock=clock)
    first = quotas.refreshed()
    assert first is not None, "before the first read everybody waits"
    first.result(10)
    stored.now = (Override("key", "k1", "t1", TWO, 0.0), Override("tenant", "t2", "t2", TWO, 0.0))
    assert quotas.of_key(ALICE) == UNLIMITED
    clock.now += 1.0
    reading = quotas.refreshed()
    assert reading is not None
    reading.result(10)

    assert quotas.of_key(ALICE) == TWO
    assert quotas.of_tenant(ALICE) == UNLIMITED
    quotas.close()


def test_while_what_is_known_is_fresh_enough_nobody_waits_and_one_reads():
    stored, clock = Stored(), Clock(1000.0)
    quotas = OverriddenQuotas(stored, key=UNLIMITED, tenant=UNLIMITED, clock=clock)
    quotas.refresh()
    assert quotas.refreshed() is None
    assert stored.reads == 1
    clock.now += 0.6
    stored.gate.clear()
    assert [quotas.refreshed() for _ in range(5)] == [None] * 5, "read in the background, once"
    stored.gate.set()
    quotas.close()

    assert stored.reads == 2


def test_quotas_keep_their_values_when_a_refresh_fails():
    stored, clock = Stored(), Clock(1000.0)
    stored.now = (Override("key", "k1", "t1", TWO, 0.0),)
    quotas = OverriddenQuotas(stored, key=UNLIMITED, tenant=UNLIMITED, clock=clock)
    quotas.refresh()
    stored.fails = True
    quotas.refresh()
    quotas.close()

    assert quotas.of_key(ALICE) == TWO
