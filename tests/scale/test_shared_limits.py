"""Four processes that answer requests: limits hold over all of them, exactly, also when one of them is killed."""

import signal
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import httpx
import pytest
import sqlalchemy as sa

from app.db.tables.access import rate_seat
from tests.scale.member import HALT
from tests.scale.rig import Member, Rig, eventually
from tests.server import ADMIN_KEY

WINDOW_SECONDS = 60

Sent: TypeAlias = Future[httpx.Response]


def four(rig: Rig, **settings: object) -> list[Member]:
    return [rig.member("api", **settings).start() for _ in range(4)]


def search(member: Member, query: str, *, key: str = ADMIN_KEY) -> httpx.Response:
    """Without the client of the server, which threads would share."""
    return httpx.post(
        member.server.http.base_url.join("/v1/search"),
        headers={"Authorization": f"Bearer {key}"},
        json={"query": query},
        timeout=120,
        trust_env=False,
    )


def at_all(threads: ThreadPoolExecutor, members: Sequence[Member], query: str, each: int) -> list[Sent]:
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
    refused = [answer for answer in answers if answer.status_code == 429]
    waits = [int(answer.headers["Retry-After"]) for answer in refused]
    assert min(waits) >= WINDOW_SECONDS - lasted - 1
    assert max(waits) <= WINDOW_SECONDS + 1
    assert {answer.headers["x-ratelimit-remaining-requests"] for answer in refused} == {"0"}


def test_as_many_run_at_once_as_there_are_seats_and_those_of_a_killed_process_are_free_again(rig: Rig) -> None:
    members = four(rig, tenant_concurrent_requests=3, answer_deadline_s=100)
    killed, *others = members
    uploading = rig.member("all").start()  # nothing is embedded for a search of nothing
    uploading.server.upload("ships.txt", "The keeper looks at every ship.")
    uploading.server.settled()
    uploading.server.stop()
    with ThreadPoolExecutor(32) as threads:
        cut = at_all(threads, [killed], HALT, 2)
        eventually(lambda: seats(rig) == 2, "nothing runs")
        kept = sent(at_all(threads, others, HALT, 4), refused=11)
        assert seats(rig) == 3

        killed.server.signal(signal.SIGKILL)
        assert all(isinstance(each.exception(), httpx.TransportError) for each in cut)
        assert search(others[0], "ships").status_code == 429, "it may only be slow"
        rig.pass_time(*others)
        assert seats(rig) == 1
        kept += sent(at_all(threads, others, HALT, 2), refused=4)

        for member in others:
            member.go_on()
        assert [each.result().status_code for each in kept] == [200] * 3
    eventually(lambda: seats(rig) == 0, "a seat is lost")
    assert search(others[0], "ships").status_code == 200


def test_guesses_at_all_processes_are_refused_after_as_many_as_at_one(rig: Rig) -> None:
    members = four(rig, failed_logins_per_minute=6)
    began = time.time()

    answers = [search(members[number % 4], "ships", key=f"fn_guess_{number}") for number in range(12)]
    good = [search(member, "ships") for member in members]
    assert time.time() - began < WINDOW_SECONDS - 5, "the first have left the window"

    assert [answer.status_code for answer in answers] == [401] * 6 + [429] * 6
    assert {answer.json()["limit_name"] for answer in answers[6:]} == {"failed-logins"}
    assert {answer.status_code for answer in good} == {429}, "nobody has used it from this address"


def sent(requests: list[Sent], *, refused: int) -> list[Sent]:
    """The requests that run, once all others were refused for want of a seat."""
    eventually(lambda: sum(each.done() for each in requests) >= refused, "too many run")
    ended = [each.result() for each in requests if each.done()]
    assert Counter(answer.status_code for answer in ended) == {429: refused}
    assert {answer.json()["limit_name"] for answer in ended} == {"tenant-concurrent-requests"}
    assert {answer.headers["Retry-After"] for answer in ended} == {"1"}
    return [each for each in requests if not each.done()]


def seats(rig: Rig) -> int:
    with rig.database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(rate_seat)).scalar_one()
