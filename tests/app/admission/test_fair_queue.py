"""app.admission.fair_queue: the queue is bounded, serves tenants in turns and loses no places."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.admission.fair_queue import FairQueue, Waiter
from app.errors import ServerFull


def granted(waiter: Waiter) -> bool:
    return waiter.outcome.done() and not waiter.outcome.cancelled() and waiter.outcome.exception() is None


def waits(queue: FairQueue, tenant: str, key: str = "k") -> Waiter:
    waiter = queue.join(tenant, key)
    queue.start(waiter)
    return waiter


async def test_free_places_are_given_at_once_then_some_wait_then_none():
    queue = FairQueue(2, waiting=1)
    first, second, third = (waits(queue, "a") for _ in range(3))

    assert (granted(first), granted(second), granted(third)) == (True, True, False)
    with pytest.raises(ServerFull):
        queue.join("a", "k")
    queue.leave(first)
    assert granted(third)
    assert queue.waiting == 0


async def test_a_wider_queue_gives_more_places_and_never_fewer():
    queue = FairQueue(1, waiting=9)
    queue.widen(3)
    queue.widen(2)

    assert [granted(waits(queue, "a")) for _ in range(4)] == [True, True, True, False]


async def test_c4_of_a_burst_exactly_the_free_places_come_in():
    queue = FairQueue(3, waiting=5)
    held = [waits(queue, "a") for _ in range(2)]
    entered = 0
    for _ in range(50):  # counted when checked: none of them was worked for meanwhile
        try:
            queue.join("a", "k")
            entered += 1
        except ServerFull:
            pass

    assert len(held) == 2
    assert entered == 1 + 5


@pytest.mark.parametrize("places", [1, 3])
async def test_a_tenants_burst_does_not_make_others_wait(places):
    queue = FairQueue(places, waiting=60)
    running = [waits(queue, "busy") for _ in range(places)]
    burst = [waits(queue, "busy") for _ in range(50)]
    newcomer = waits(queue, "other")
    queue.leave(running[0])

    assert granted(newcomer), "the next free place is the newcomer's"
    assert not any(granted(waiter) for waiter in burst)


async def test_keys_of_one_tenant_take_turns():
    queue = FairQueue(1, waiting=60)
    holder = waits(queue, "a", "k0")
    waiting = [waits(queue, "a", key) for key in ["k1"] * 4 + ["k2"] * 2]
    order = []
    for _ in range(6):
        queue.leave(holder)
        holder = next(waiter for waiter in waiting if granted(waiter))
        waiting.remove(holder)
        order.append(holder.key[1])

    assert order == ["k1", "k2", "k1", "k2", "k1", "k1"]


async def test_when_the_line_is_full_who_flooded_it_gives_way():
    queue = FairQueue(1, waiting=4)
    waits(queue, "flood")
    flood = [waits(queue, "flood") for _ in range(4)]
    newcomer = queue.join("other", "k")

    assert isinstance(flood[-1].outcome.exception(), ServerFull), "the last one, who has waited least"
    assert not any(waiter.outcome.done() for waiter in flood[:-1])
    queue.join("other", "k")
    with pytest.raises(ServerFull):
        queue.join("other", "k")  # two each
    with pytest.raises(ServerFull):
        queue.join("flood", "k")
    queue.leave(newcomer)
    queue.leave(flood[-1])
    queue.check_integrity()


async def test_who_is_not_ready_does_not_hold_up_the_others():
    queue = FairQueue(1, waiting=4)
    slow = queue.join("a", "k")  # its body hardly comes
    quick = waits(queue, "b")

    assert granted(quick)
    assert not slow.outcome.done()
    queue.leave(quick)
    queue.start(slow)
    assert granted(slow)


async def test_the_time_to_come_back_follows_the_pace():
    now = [0.0]
    queue = FairQueue(1, waiting=100, clock=lambda: now[0])
    for _ in range(100):
        holder = waits(queue, "a")
        now[0] += 4.0
        queue.leave(holder)
    for _ in range(21):
        waits(queue, "a")

    assert queue.retry_after_s == 40  # half of 20 at 4 s each
    for _ in range(80):
        waits(queue, "a")
    assert queue.retry_after_s == 60, "never longer"


acts = st.lists(st.tuples(st.sampled_from(["join", "start", "leave"]), st.integers(0, 30)), max_size=120)


@given(acts=acts, places=st.integers(1, 4), waiting=st.integers(0, 6))
@settings(deadline=None)
def test_whatever_happens_no_place_is_lost_or_lies_idle(acts, places, waiting):
    async def happen() -> None:
        queue, present = FairQueue(places, waiting=waiting), []
        for act, number in acts:
            if act == "join":
                with suppress(ServerFull):
                    present.append(queue.join(f"t{number % 3}", f"k{number % 2}"))
            elif present:
                waiter = present[number % len(present)]
                if act == "start" and not waiter.ready and not waiter.outcome.done():
                    queue.start(waiter)
                elif act == "leave":
                    present.remove(waiter)
                    queue.leave(waiter)
            queue.check_integrity()
            assert queue.waiting <= waiting + places
        for waiter in present:
            queue.leave(waiter)
            queue.leave(waiter)
        queue.check_integrity()
        assert (queue.waiting, queue.held) == (0, 0)

    asyncio.run(happen())


@given(bursts=st.lists(st.integers(1, 12), min_size=2, max_size=4))
@settings(deadline=None, max_examples=30)
def test_while_all_have_requests_waiting_nobody_gets_more_than_one_turn_ahead(bursts):
    async def happen() -> None:
        queue = FairQueue(1, waiting=100)
        holder = waits(queue, "before")
        waiting = [waits(queue, f"t{tenant}") for tenant, size in enumerate(bursts) for _ in range(size)]
        served: Counter[str] = Counter()
        while all(served[f"t{tenant}"] < size for tenant, size in enumerate(bursts)):
            queue.leave(holder)
            holder = next(waiter for waiter in waiting if granted(waiter))
            waiting.remove(holder)
            served[holder.tenant] += 1
            counts = [served[f"t{tenant}"] for tenant in range(len(bursts))]
            assert max(counts) - min(counts) <= 1

    asyncio.run(happen())
