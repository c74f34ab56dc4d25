"""The path that a request is judged and routed by: its path without the prefix of a reverse proxy.

Some proxies take the prefix off and some leave it, and a client can write it once more than it should. `RootPath` sees
every request first and makes of each of these one path. The request gate, the error handlers and the router then never
differ about it, so no request is judged as one route and answered by another.
"""

import re
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Receive, Scope, Send


class RootPath:
    """ASGI middleware that makes `path`, `raw_path` and `root_path` of a request agree; it must be the outermost.

    It takes one prefix off where there is one; the rest is the route path. `path` becomes the prefix and the route
    path, as the ASGI specification wants it. A router takes `root_path` off `path` and so has the route path again.
    """

    def __init__(self, app: ASGIApp, prefix: str = "") -> None:
        """Take the application.

        Args:
            app: The rest of the application.
            prefix: The path below which a proxy shows the application, such as `/footnote`; empty without one.
        """
        assert not prefix or (prefix.startswith("/") and not prefix.endswith("/")), "the setting's pattern"
        self._app = app
        self._prefix = prefix
        self._sent_prefix = re.compile("".join(map(_sent_as, prefix)).encode("ascii"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection (ASGI 3)."""
        if scope["type"] in {"http", "websocket"}:
            self._settle(scope)
        await self._app(scope, receive, send)

    def _settle(self, scope: Scope) -> None:
        sent = str(scope["path"])
        bare = bool(self._prefix) and sent == self._prefix
        prefixed = bare or sent.startswith(f"{self._prefix}/")
        route = sent.removeprefix(self._prefix) if prefixed else sent
        if not route.startswith("/"):  # `*` (RFC 9112, section 3.2.4), a whole address, or nothing after the prefix
            route = f"/{route}"
        scope.update(path=self._prefix + route, root_path=self._prefix)
        scope.pop("app_root_path", None)  # Starlette's word for the outermost of several root paths
        if scope.get("raw_path") is not None:
            scope["raw_path"] = self._prefix.encode("ascii") + self._raw(scope["raw_path"], route, prefixed=prefixed)
        scope.setdefault("state", {}).update(route_path=route, bare_prefix=bare)

    def _raw(self, sent: bytes, route: str, *, prefixed: bool) -> bytes:
        """The route path as the client wrote it, escapes included; written anew where that is another path."""
        found = self._sent_prefix.match(sent) if prefixed else None
        raw = sent[found.end() :] if found else sent
        return raw if unquote(raw.decode("latin-1")) == route else quote(route, errors="replace").encode("ascii")


def route_path(scope: Scope) -> str:
    """The path by which a request is judged and routed; it begins with a slash and has no proxy's prefix.

    Nothing else may be judged by: `scope["path"]` and `request.url` hold the prefix.
    """
    assert "route_path" in scope.get("state", {}), "RootPath sees every request first"
    return str(scope["state"]["route_path"])


def is_bare_prefix(scope: Scope) -> bool:
    """Whether the client asked for the prefix without a slash after it: `/footnote` for `/footnote/`."""
    return bool(scope["state"]["bare_prefix"])


def _sent_as(character: str) -> str:
    """A pattern of the ways in which a client can write one character of a path."""
    return f"(?:{re.escape(character)}|%(?i:{ord(character):02x}))"
