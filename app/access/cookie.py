"""The session cookie, and what a request that comes with it has to show to change anything.

A browser sends a cookie with every request to its site, whoever made the page that asked. So besides
SameSite (RFC 6265bis, section 4.1.2.7) an unsafe request names a token that only our own page can read,
and a request that says it comes from elsewhere is refused (Fetch Metadata; RFC 6454).
"""

import hashlib
import hmac
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from app.errors import CrossSiteRequest

COOKIE = "footnote_session"
CSRF_HEADER = "X-Footnote-CSRF"

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""They change nothing, so they need no token (RFC 9110, section 9.2.1)."""

_OWN_SITE = frozenset({"same-origin", "none"})  # none: the user typed it


def session_secret(headers: Headers) -> str | None:
    """The secret in the request's session cookie, None without one."""
    for header in headers.getlist("cookie"):
        secret = cookie_parser(header).get(COOKIE)
        if secret:
            return secret
    return None


def csrf_token(secret: str) -> str:
    """The token of the session with this secret: an HMAC (RFC 2104), so it is stored nowhere."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"footnote csrf", hashlib.sha256).hexdigest()


def require_own_page(headers: Headers, method: str, secret: str) -> None:
    """Check that a request with a session cookie was made by our own page; safe methods may come from anywhere.

    Raises:
        CrossSiteRequest: It comes from another site, or does not name the session's token.
    """
    if method in SAFE_METHODS:
        return
    require_same_site(headers)
    given = headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), csrf_token(secret).encode()):
        raise CrossSiteRequest(f"Send the session's token in the header {CSRF_HEADER}; GET /v1/session tells it.")


def require_same_site(headers: Headers) -> None:
    """Check that a request does not say it comes from another site; who says nothing is no browser.

    Raises:
        CrossSiteRequest: It does.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    # hosts alone are compared: behind a proxy that ends TLS we do not know which scheme the browser sees
    elsewhere = origin is not None and urlsplit(origin).netloc.casefold() != headers.get("host", "").casefold()
    if elsewhere or (site is not None and site not in _OWN_SITE):
        raise CrossSiteRequest("This request comes from another site.")


def set_cookie(name: str, value: str, *, path: str, seconds: int, same_site: str, secure: bool) -> str:
    """A `Set-Cookie` header that scripts cannot read; `seconds` 0 removes the cookie."""
    cookie: SimpleCookie = SimpleCookie()
    cookie[name] = value
    morsel = cookie[name]
    morsel["path"], morsel["max-age"] = path, seconds
    morsel["httponly"], morsel["samesite"] = True, same_site
    if secure:
        morsel["secure"] = True
    return morsel.OutputString()
