"""app.admission.rates: requests, tokens and concurrency, of keys and of tenants."""

from dataclasses import replace
from typing import Any

import pytest

from app.admission.quotas import UNLIMITED, Quota
from app.admission.rates import Rates
from app.admission.token_limiter import TokenLimiter
from app.api.gate.request_gate import rate_limit_headers
from app.db.tables.usage_columns import Measures
from app.errors import RateLimited
from app.types import OPENID, Operation, Principal, Role
from app.usage.ledger.entry import ADJUSTMENT, Entry
from tests.app.usage.samples import Clock, reservation

UNUSED: Any = None  # the connection: this book writes nothing
ALICE = Principal("t1", "alice", "k1", Role.MEMBER)
BOB = Principal("t1", "bob", "k2", Role.MEMBER)
RIVAL = Principal("t2", "rival", "k3", Role.MEMBER)


class Fixed:
    """The same quota for every key, and for every tenant."""

    def __init__(self, key: Quota = UNLIMITED, tenant: Quota = UNLIMITED) -> None:
        self.key, self.tenant = key, tenant

    def of_key(self, principal: Principal) -> Quota:
        return self.key

    def of_tenant(self, principal: Principal) -> Quota:
        return self.tenant


def rates(key: Quota = UNLIMITED, tenant: Quota = UNLIMITED) -> tuple[Rates, Clock]:
    clock = Clock(1000.0)
    return Rates(Fixed(key, tenant), clock=clock), clock


def test_requests_a_minute_are_counted_for_each_key():
    limited, clock = rates(Quota(requests_per_minute=2))
    for _ in range(2):
        limited.begin(ALICE)()
        clock.now += 10
    with pytest.raises(RateLimited) as refused:
        limited.begin(ALICE)
    limited.begin(BOB)()

    assert (refused.value.name, refused.value.limit, refused.value.window_s) == ("key-requests", 2, 60)
    assert refused.value.retry_after_s in {40, 41}
    clock.now += refused.value.retry_after_s
    limited.begin(ALICE)()


def test_users_without_keys_are_counted_one_by_one():
    limited, _ = rates(Quota(requests_per_minute=1))
    limited.begin(replace(ALICE, key_id=OPENID))()
    limited.begin(replace(BOB, key_id=OPENID))()
    with pytest.raises(RateLimited):
        limited.begin(replace(ALICE, key_id=OPENID))


def test_a_tenants_keys_share_its_limit_and_other_tenants_have_their_own():
    limited, _ = rates(tenant=Quota(requests_per_minute=2))
    limited.begin(ALICE)()
    limited.begin(BOB)()
    with pytest.raises(RateLimited, match="Your tenant has reached its limit of 2 requests a minute") as refused:
        limited.begin(ALICE)

    assert refused.value.name == "tenant-requests"
    limited.begin(RIVAL)()


def test_what_is_refused_is_not_counted():
    limited, clock = rates(Quota(requests_per_minute=5), Quota(requests_per_minute=1))
    limited.begin(ALICE)()
    for _ in range(9):
        with pytest.raises(RateLimited):
            limited.begin(ALICE)
    clock.now += 61
    limited.begin(ALICE)()

    assert [state.remaining for state in limited.states(ALICE)] == [4, 0]


def test_when_there_is_no_room_nothing_was_counted():
    limited, _ = rates(Quota(requests_per_minute=1, concurrent_requests=1))

    def full() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        limited.begin(ALICE, room=full)
    limited.begin(ALICE)()


def test_concurrent_requests_above_the_limit_are_refused_until_one_ends():
    limited, _ = rates(Quota(concurrent_requests=2))
    first, _ = limited.begin(ALICE), limited.begin(ALICE)
    with pytest.raises(RateLimited) as refused:
        limited.begin(ALICE)
    first()
    limited.begin(ALICE)

    assert (refused.value.name, refused.value.window_s) == ("key-concurrent-requests", None)
    assert refused.value.retry_after_s == 1


def test_a_limit_that_changes_keeps_what_was_taken():
    quotas = Fixed(Quota(requests_per_minute=9))
    limited = Rates(quotas, clock=Clock(1000.0))
    for _ in range(3):
        limited.begin(ALICE)()
    quotas.key = Quota(requests_per_minute=3)

    with pytest.raises(RateLimited):
        limited.begin(ALICE)


def entry(event_id: str, *, used: int, status: str = "completed") -> Entry:
    counted = reservation(event_id)
    return Entry(
        event_id=event_id,
        tenant_id="t1",
        project_id="",
        user_id="u1",
        key_id="k1",
        model="m1",
        operation=Operation.CHAT,
        status=status,
        at=0,
        calls=1,
        measures=Measures.read(used, counted.components),
        cost_pico=None,
    )


def test_tokens_are_taken_at_their_most_and_corrected_when_the_call_ends():
    limited, _ = rates(Quota(tokens_per_minute=200))
    book = TokenLimiter(limited)
    book.reserve_in(UNUSED, reservation("req_1:1", max_output_tokens=130), at=0, most_pico=None)  # 20 in, 130 out
    with pytest.raises(RateLimited) as refused:
        book.reserve_in(UNUSED, reservation("req_2:1", max_output_tokens=130), at=0, most_pico=None)
    book.settle_in(UNUSED, entry("req_1:1", used=0, status=ADJUSTMENT))
    assert limited.states(ALICE)[0].remaining == 50
    book.settle_in(UNUSED, entry("req_1:1", used=25))

    assert refused.value.name == "key-tokens"
    assert limited.states(ALICE)[0].remaining == 175
    book.reserve_in(UNUSED, reservation("req_2:1", max_output_tokens=130), at=0, most_pico=None)


def test_who_has_used_up_its_tokens_is_refused_at_the_door():
    limited, clock = rates(Quota(tokens_per_minute=20))
    book = TokenLimiter(limited)
    book.reserve_in(UNUSED, reservation("req_1:1", max_output_tokens=0), at=0, most_pico=None)
    with pytest.raises(RateLimited, match="a limit of 20 tokens a minute"):
        limited.begin(ALICE)
    clock.now += 61

    limited.begin(ALICE)


def test_ingestion_does_not_count_against_the_token_rate_limit():
    limited, _ = rates(Quota(tokens_per_minute=1))
    read = reservation("job_1", operation=Operation.EMBED_DOC, input_tokens=9999, max_output_tokens=0)
    TokenLimiter(limited).reserve_in(UNUSED, read, at=0, most_pico=None)

    assert limited.states(ALICE)[0].remaining == 1


def test_nothing_is_remembered_of_who_is_not_limited():
    limited, _ = rates()
    for number in range(100):
        limited.begin(Principal("t1", "u", f"k{number}", Role.READER))()

    assert len(limited) == 0


def test_the_headers_are_those_of_the_draft_and_those_clients_of_openai_read():
    limited, _ = rates(Quota(requests_per_minute=60, concurrent_requests=4), Quota(tokens_per_minute=500))
    limited.begin(ALICE)
    headers = rate_limit_headers(limited.states(ALICE))

    assert headers["RateLimit-Policy"] == (
        '"key-requests";q=60;w=60, "key-concurrent-requests";q=4;qu="concurrent-requests", '
        '"tenant-tokens";q=500;qu="tokens";w=60'
    )
    assert headers["RateLimit"] in {
        f'"key-requests";r=59;t={reset}, "key-concurrent-requests";r=3, "tenant-tokens";r=500;t=0' for reset in (60, 61)
    }
    assert headers["x-ratelimit-limit-requests"] == "60"
    assert headers["x-ratelimit-remaining-requests"] == "59"
    assert headers["x-ratelimit-reset-requests"] in {"60s", "61s"}
    assert (headers["x-ratelimit-remaining-tokens"], headers["x-ratelimit-reset-tokens"]) == ("500", "0s")
    assert rate_limit_headers(()) == {}
