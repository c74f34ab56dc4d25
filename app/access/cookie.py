"""The session cookie and the protection against cross-site request forgery (CSRF).

A browser sends a cookie with every request to its site, also with those that another site's page makes. Besides
SameSite (RFC 6265bis, section 4.1.2.7) an unsafe request therefore needs a token that only our own page can read.
A request whose headers name another site is refused (Fetch Metadata; RFC 6454).
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
"""Methods that change nothing and need no CSRF token (RFC 9110, section 9.2.1)."""

_OWN_SITE = frozenset({"same-origin", "none"})  # none: the user entered the address


def session_secret(headers: Headers) -> str | None:
    """The secret in the request's session cookie; None without a cookie."""
    for header in headers.getlist("cookie"):
        secret = cookie_parser(header).get(COOKIE)
        if secret:
            return secret
    return None


def csrf_token(secret: str) -> str:
    """The CSRF token of the session with this secret: an HMAC (RFC 2104), so that it need not be stored."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"footnote csrf", hashlib.sha256).hexdigest()


def require_own_page(headers: Headers, method: str, secret: str) -> None:
    """Check that a request with a session cookie was made by our own page; safe methods may come from anywhere.

    Raises:
        CrossSiteRequest: It comes from another site, or lacks the session's token.
    """
    if method in SAFE_METHODS:
        return
    require_same_site(headers)
    given = headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), csrf_token(secret).encode()):
        raise CrossSiteRequest(f"Send the session's token in the header {CSRF_HEADER}; GET /v1/session returns it.")


def require_same_site(headers: Headers) -> None:
    """Check that a request's headers name no other site. Clients that send no such headers are not browsers.

    Raises:
        CrossSiteRequest: `Sec-Fetch-Site` or `Origin` names another site.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    # only hosts are compared: behind a proxy that ends TLS the scheme that the browser sees is unknown
    elsewhere = origin is not None and _host_of(origin) != headers.get("host", "").casefold()
    if elsewhere or (site is not None and site not in _OWN_SITE):
        raise CrossSiteRequest("This request comes from another site.")


def _host_of(origin: str) -> str | None:
    """The host and port of an origin; None of one that is no address."""
    try:
        return urlsplit(origin).netloc.casefold()
    except ValueError:  # such as `http://[`
        return None


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
