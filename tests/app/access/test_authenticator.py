"""app.access.authenticator looks up each secret once and caches only valid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.types import Message

from app.access.authenticator import AccessRevoked, Authenticator, until_revoked
from app.access.cookie import COOKIE, CSRF_HEADER, csrf_token
from app.access.key_cache import FRESH_SECONDS, KeyCache
from app.errors import CrossSiteRequest, Unauthenticated
from app.types import Principal, Role

ADA = Principal("t1", "ada", "key_1", Role.MEMBER)


class Secrets:
    """A `KeyLookup` that counts."""

    def __init__(self, **good: Principal) -> None:
        self.good = good
        self.lookups = 0

    def authenticate(self, secret: str) -> Principal | None:
        self.lookups += 1
        return self.good.get(secret)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def bearer(secret: str) -> Headers:
    return Headers({"authorization": f"Bearer {secret}"})


async def test_a_good_key_is_looked_up_once_in_half_a_second():
    keys, clock = Secrets(good=ADA), Clock()
    authenticator = Authenticator(keys, Secrets(), cache=KeyCache(clock=clock))

    for _ in range(3):
        assert (await authenticator.caller(bearer("good"), "GET")).principal == ADA
    assert keys.lookups == 1
    clock.now += FRESH_SECONDS
    await authenticator.caller(bearer("good"), "GET")
    assert keys.lookups == 2


async def test_a_key_is_refused_at_once_after_the_cache_is_invalidated():
    keys, cache = Secrets(good=ADA), KeyCache()
    authenticator = Authenticator(keys, Secrets(), cache=cache)
    caller = await authenticator.caller(bearer("good"), "GET")

    keys.good.clear()
    cache.invalidate()

    with pytest.raises(Unauthenticated):
        await authenticator.caller(bearer("good"), "GET")
    with pytest.raises(Unauthenticated):
        await authenticator.recheck(caller)


async def test_e1_an_unknown_key_costs_what_a_revoked_one_does_and_is_not_kept():
    keys, cache = Secrets(good=ADA), KeyCache()
    authenticator = Authenticator(keys, Secrets(), cache=cache)
    for number in range(50):
        with pytest.raises(Unauthenticated, match="not valid"):
            await authenticator.caller(bearer(f"fn_guess_{number}"), "GET")

    assert (keys.lookups, len(cache)) == (50, 0)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic good", "good"])
async def test_what_is_no_key_is_refused_without_a_lookup(header):
    keys = Secrets(good=ADA)

    with pytest.raises(Unauthenticated):
        await Authenticator(keys, Secrets()).caller(Headers({} if header is None else {"authorization": header}), "GET")
    assert keys.lookups == 0


async def test_a_key_wins_over_a_session_and_needs_no_token():
    bob = Principal("t1", "bob", "key_2", Role.READER)
    authenticator = Authenticator(Secrets(good=ADA), Secrets(cookie=bob))
    both = Headers({"authorization": "Bearer good", "cookie": f"{COOKIE}=cookie"})

    caller = await authenticator.caller(both, "POST")

    assert (caller.principal, caller.by_cookie) == (ADA, False)
    assert "good" not in repr(caller)


async def test_a_keys_secret_is_no_session_and_a_sessions_no_key():
    authenticator = Authenticator(Secrets(good=ADA), Secrets(cookie=ADA))
    await authenticator.caller(bearer("good"), "GET")

    with pytest.raises(Unauthenticated):
        await authenticator.caller(Headers({"cookie": f"{COOKIE}=good"}), "GET")
    with pytest.raises(Unauthenticated):
        await authenticator.caller(bearer("cookie"), "GET")


FORGED: tuple[dict[str, str], ...] = (
    {},
    {CSRF_HEADER: ""},
    {CSRF_HEADER: "0" * 64},
    {CSRF_HEADER: csrf_token("another")},
    {CSRF_HEADER: csrf_token("cookie"), "sec-fetch-site": "cross-site"},
    {CSRF_HEADER: csrf_token("cookie"), "sec-fetch-site": "same-site"},
    {CSRF_HEADER: csrf_token("cookie"), "origin": "https://evil.example"},
    {CSRF_HEADER: csrf_token("cookie"), "origin": "null"},
    {CSRF_HEADER: csrf_token("cookie"), "origin": "http://["},
)


@pytest.mark.parametrize("extra", FORGED)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE"])
async def test_a_session_changes_nothing_for_another_page(method, extra):
    authenticator = Authenticator(Secrets(), Secrets(cookie=ADA))
    headers = {"host": "footnote.example", "cookie": f"{COOKIE}=cookie", **extra}

    with pytest.raises(CrossSiteRequest):
        await authenticator.caller(Headers(headers), method)
    own = {CSRF_HEADER: csrf_token("cookie"), "origin": "https://footnote.example", "sec-fetch-site": "same-origin"}
    assert (await authenticator.caller(Headers({**headers, **own}), method)).by_cookie


def test_what_was_read_before_a_change_is_not_kept_after_it():
    cache = KeyCache()
    epoch = cache.epoch

    cache.invalidate()
    cache.store("d", ADA, epoch=epoch)

    assert cache.find("d") is None


@given(st.lists(st.integers(0, 30), max_size=200))
def test_the_principals_known_never_exceed_their_bound(digests):
    cache = KeyCache(capacity=7)
    for digest in digests:
        cache.store(str(digest), ADA, epoch=cache.epoch)
        assert len(cache) <= 7
        assert cache.find(str(digest)) == ADA


async def streamed(media_type: str) -> list[bytes]:
    """What is sent of an answer in three parts whose caller's key ends after the first."""
    keys, cache, sent = Secrets(good=ADA), KeyCache(), []
    authenticator = Authenticator(keys, Secrets(), cache=cache)
    caller = await authenticator.caller(bearer("good"), "GET")

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    checked = until_revoked(send, authenticator, {"type": "http", "method": "GET", "state": {"caller": caller}})
    headers = [(b"content-type", media_type.encode())]
    await checked({"type": "http.response.start", "status": 200, "headers": headers})
    for part in (b"one", b"two", b"three"):
        await checked({"type": "http.response.body", "body": part, "more_body": part != b"three"})
        keys.good.clear()
        cache.invalidate()
    return sent[1:]


async def test_an_export_stops_when_its_key_has_ended():
    with pytest.raises(AccessRevoked):
        await streamed("text/csv")


async def test_an_event_stream_says_for_itself_why_it_ends():
    assert await streamed("text/event-stream; charset=utf-8") == [b"one", b"two", b"three"]
