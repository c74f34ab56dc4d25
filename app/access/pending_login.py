"""Pending OpenID sign-ins: signed state that the browser holds in a cookie, valid once and for ten minutes."""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from cachetools import TLRUCache

from app.errors import Unauthenticated

LIFETIME_S = 600
_MOST_SPENT = 10_000
_FAILED = "This sign-in is over; begin again."


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """One sign-in attempt: `state` ties the callback to the browser, `nonce` the ID token; `verifier` is PKCE's."""

    state: str
    nonce: str
    verifier: str
    next_path: str
    expires_at: float


class PendingLogins:
    """Signs attempts with a key of this process (HMAC-SHA256), so that the server stores nothing for strangers.

    Completed attempts are kept until they expire, so that none completes twice. Safe to use from any thread.

    Example:
        >>> attempt, cookie = logins.begin("/documents")
        >>> logins.finish(cookie, attempt.state).next_path
        '/documents'
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._key = secrets.token_bytes(32)
        self._clock = clock
        self._lock = threading.Lock()
        self._spent: TLRUCache[str, float, float] = TLRUCache(
            _MOST_SPENT, lambda _state, expires_at, _now: expires_at, timer=clock
        )

    def begin(self, next_path: str) -> tuple[PendingLogin, str]:
        """A new attempt and the value of its cookie."""
        made = PendingLogin(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            next_path=next_path,
            expires_at=self._clock() + LIFETIME_S,
        )
        payload = base64.urlsafe_b64encode(json.dumps(asdict(made)).encode()).decode().rstrip("=")
        return made, f"{payload}.{self._seal(payload)}"

    def finish(self, cookie: str | None, state: str) -> PendingLogin:
        """Complete the attempt that `state` belongs to, and return it.

        Raises:
            Unauthenticated: The cookie is not ours, is another attempt's, has expired, or was used before.
        """
        payload, _, seal = (cookie or "").partition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "surrogatepass"), self._seal(payload).encode()):
            raise Unauthenticated(_FAILED)
        found = PendingLogin(**json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))
        now = self._clock()
        same = hmac.compare_digest(found.state.encode(), state.encode("utf-8", "surrogatepass"))
        if not same or found.expires_at <= now or not self._spend(found):
            raise Unauthenticated(_FAILED)
        return found

    def _spend(self, found: PendingLogin) -> bool:
        with self._lock:
            if found.state in self._spent:
                return False
            self._spent[found.state] = found.expires_at
            return True

    def _seal(self, payload: str) -> str:
        return hmac.new(self._key, payload.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
