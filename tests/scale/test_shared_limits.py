"""Four processes that answer requests: limits hold over all of them, exactly, also when one of them is killed."""

import signal
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from tests.scale.member import HALT
from tests.scale.rig import Member, Rig, eventually
from tests.server import ADMIN_KEY

WINDOW_SECONDS = 60


def four(rig: Rig, **settings: object) -> list[Member]:
    return [rig.member("api", **settings).start() for _ in range(4)]


def search(member: Member, query: str) -> httpx.Response:
    """Without the client of the server, which threads would share."""
    return httpx.post(
        member.server.http.base_url.join("/v1/search"),
        headers={"Authorization": f"Bearer {ADMIN_KEY}"},
        json={"query": query},
        timeout=120,
        trust_env=False,
    )


def at_all(threads: ThreadPoolExecutor, members: Sequence[Member], query: str, each: int) -> list[Future[httpx.Response]]:
    return [threads.submit(search, member, query) for _ in range(each) for member in members]


@pytest.mark.parametrize("setting", ["requests_per_minute", "tenant_requests_per_minute"])
def test_fifty_a_minute_are_fifty_over_four_processes(rig: Rig, setting: str) -> None:
    members = four(rig, **{setting: 50})
    began = time.time()
    with ThreadPoolExecutor(24) as threads:
        answers = [each.result() for each in at_all(threads, members, "ships", 40)]
    lasted = time.time() - began
    assert lasted < WINDOW_SECONDS - 5, "the first have left the window"

    assert Counter(answer.status_code for answer in answers) == {200: 50, 429: 110}
    refused = [int(answer.headers["Retry-After"]) for answer in answers if answer.status_code == 429]
    assert min(refused) >= WINDOW_SECONDS - lasted - 1
    assert max(refused) <= WINDOW_SECONDS + 1
    left = [int(answer.headers["x-ratelimit-remaining-requests"]) for answer in answers if answer.status_code == 200]
    assert sorted(left) == list(range(50)), "each saw its own count"


def test_as_many_run_at_once_as_there_are_seats_and_those_of_a_killed_process_are_free_again(rig: Rig) -> None:
    members = four(rig, tenant_concurrent_requests=3, answer_deadline_s=100)
    first, *others = members
    with ThreadPoolExecutor(24) as threads:
        held = at_all(threads, [first], HALT, 2)
        eventually(lambda: seats(rig) == 2, "nothing runs")
        rest = at_all(threads, others, HALT, 4)
        refused = [each for each in rest if each.result_or_running() == 429]


def seats(rig: Rig) -> int:
    return 0
