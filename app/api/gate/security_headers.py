"""Security headers of every response (OWASP Secure Headers Project; Content Security Policy Level 3)."""

import base64
import hashlib

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.root_path import route_path

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_PAGE = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self'{inline}; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
_TWO_YEARS = 63_072_000  # seconds: the minimum for browsers' HSTS preload lists is one year


class SecurityHeaders:
    """ASGI middleware that adds security headers to every response; headers that a route has set stay."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started: Message | None = None  # of a page, held back until the hashes of its scripts are known

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                _mark(headers, scope)
                if _is_page(headers):
                    started = message
                    return
                headers.setdefault("Content-Security-Policy", _NOTHING)
            elif started is not None and message["type"] == "http.response.body":
                policy = _page_policy(route_path(scope), message.get("body", b""))
                MutableHeaders(scope=started).setdefault("Content-Security-Policy", policy)
                await send(started)
                started = None
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _mark(headers: MutableHeaders, scope: Scope) -> None:
    for name, value in _ALWAYS.items():
        headers.setdefault(name, value)
    if route_path(scope).startswith(("/v1/", "/mcp")):
        headers.setdefault("Cache-Control", "no-store")  # responses hold private documents (RFC 9111, section 5.2.2.5)
    if scope["scheme"] == "https":
        headers.setdefault("Strict-Transport-Security", f"max-age={_TWO_YEARS}")


def _is_page(headers: MutableHeaders) -> bool:
    return headers.get("content-type", "").startswith("text/html") and "content-security-policy" not in headers


def _page_policy(path: str, start: bytes) -> str:
    """The content security policy of our pages: only resources of this server.

    The API's documentation (/docs) starts with an inline script, which is allowed by its hash, and has inline styles.
    """
    if path != "/docs":
        return _PAGE.format(hashes="", inline="")
    scripts = (rest.partition(b"</script>") for rest in start.split(b"<script>")[1:])
    digests = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script, closing, _ in scripts if closing)
    hashes = "".join(f" 'sha256-{digest}'" for digest in digests)
    return _PAGE.format(hashes=hashes, inline=" 'unsafe-inline'")
