"""Whatever a proxy and a client make of the prefix, what judges a request and what routes it see one path."""

import asyncio
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.root_path import RootPath, is_bare_prefix, route_path

PREFIX = "/notes/v1"
PARTS = ("/notes", "/v1", PREFIX, "/Notes/v1", "/notes/v1x", "/", "/files", "/..", "/a b", "/é", "*", "%2F", "x")


class Paths:
    """An application that notes the path that a gate before the router sees, before and after, and the routed one."""

    def __init__(self) -> None:
        self.judged = self.routed = self.judged_after = ""

        async def below(request: Request) -> Response:
            self.routed = f"/files/{request.path_params['rest']}"
            return Response()

        async def anywhere(request: Request) -> Response:
            self.routed = f"/{request.path_params['rest']}"
            return Response()

        files = Router([Route("/{rest:path}", below)])
        self._router: ASGIApp = Router([Mount("/files", files), Route("/{rest:path}", anywhere)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.judged = route_path(scope)
        await self._router(scope, receive, send)
        self.judged_after = route_path(scope)


def settled(path: str, raw: bytes | None = None, *, prefix: str = PREFIX, **given: str) -> tuple[Paths, Scope]:
    """What the application saw of a request, and its scope."""
    paths = Paths()
    scope: Scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": [], **given}
    if raw is not None:
        scope["raw_path"] = raw

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    asyncio.run(RootPath(paths, prefix)(scope, receive, send))
    return paths, scope


@given(
    path=st.lists(st.sampled_from(PARTS), max_size=6).map("".join),
    escaped=st.data(),
    prefix=st.sampled_from(["", PREFIX]),
)
def test_judge_and_router_see_one_path_and_the_raw_path_is_that_too(path: str, escaped: st.DataObject, prefix: str):
    raw = "".join(
        f"%{ord(each):02x}" if escaped.draw(st.booleans()) and each.isalpha() and each.isascii() else quote(each)
        for each in path
    )

    paths, scope = settled(path, raw.encode(), prefix=prefix)

    assert paths.judged == paths.routed == paths.judged_after
    assert scope["path"] == prefix + paths.judged
    assert unquote(scope["raw_path"].decode()) == scope["path"]
    sent = path if path.startswith("/") else f"/{path}"
    assert paths.judged == sent or prefix + paths.judged in {sent, f"{sent}/"}, "one prefix is taken off, and no more"


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/ask", "/v1/ask"),
        ("/notes/v1/ask", "/ask"),
        ("/notes/v1/notes/v1/ask", "/notes/v1/ask"),
        ("/notes/v1x", "/notes/v1x"),
        ("/NOTES/v1/ask", "/NOTES/v1/ask"),
        ("/notes", "/notes"),
        ("/notes/v1", "/"),
        ("/notes/v1/", "/"),
        ("/notes/v1//ask", "//ask"),
        ("*", "/*"),
        ("", "/"),
        ("http://notes.example/notes/v1/ask", "/http://notes.example/notes/v1/ask"),
    ],
)
def test_one_whole_prefix_is_taken_off(path: str, route: str):
    paths, scope = settled(path)

    assert (paths.judged, paths.routed) == (route, route)
    assert is_bare_prefix(scope) == (path == PREFIX)


def test_the_raw_path_keeps_the_escapes_of_the_client():
    _, scope = settled("/notes/v1/a/b c", b"/%6eotes%2Fv1/a%2fb%20c")

    assert scope["raw_path"] == b"/notes/v1/a%2fb%20c"


def test_a_raw_path_that_is_another_path_is_written_anew():
    _, scope = settled("/v1/ask", b"/v1/admin/tenants")

    assert scope["raw_path"] == b"/notes/v1/v1/ask"


def test_what_the_server_says_of_a_root_path_is_not_believed():
    paths, scope = settled("/v1/admin/x", prefix="", root_path="/v1/admin", app_root_path="/v1")

    assert (paths.judged, paths.routed, scope["root_path"]) == ("/v1/admin/x", "/v1/admin/x", "")


async def test_a_web_socket_has_the_same_path():
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(route_path(scope))

    async def never(*_: object) -> Any:
        pytest.fail("nothing is read or sent")

    await RootPath(app, PREFIX)({"type": "websocket", "path": "/notes/v1/ask"}, never, never)

    assert seen == ["/ask"]


def test_nothing_is_judged_before_the_path_is_settled():
    with pytest.raises(AssertionError):
        route_path({"type": "http", "path": "/v1/ask", "root_path": ""})
