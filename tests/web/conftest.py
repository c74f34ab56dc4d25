"""A server, a browser, and for each test a tenant of its own and a window in which nothing may go wrong."""

import os
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import pytest_asyncio

from app.access.cookie import COOKIE
from tests.faults.forked import Application, ForkedServer
from tests.installation import installed
from tests.server import ADMIN_KEY
from tests.web.looking import seen
from tests.web.served import application
from tests.web.spare import HEIGHT, WIDTH, Spare

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page

_HERE = Path(__file__).parent
# The first has no windows to draw round a page, so that it opens one in half the time.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Every window of chromium loads two pages of its own for its address bar, which nobody sees here, and keeps a process
# for a page to come: together they take longer than a page of ours. The last of these options is the one that counts,
# so that what playwright turns off by it is turned off again.
_OFF = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "SpareRendererForSitePerProcess",
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled",
    "PreconnectToSearch",
)  # fmt: skip
_FLAGS = (
    f"--disable-features={','.join(_OFF)}",
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
_tenants = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a browser is told, it is told from one event loop."""
    for item in items:
        if _HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@contextmanager
def served_from(folder: Path, application: Application) -> Iterator[ForkedServer]:
    """A server of `application` over a new installation in `folder`, with the page as it was built."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    server = ForkedServer(installed(folder / "data"), application, drain_s=1)
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedServer]:
    """The installation that most tests share; its model has prices."""
    with served_from(tmp_path_factory.mktemp("web"), application) as server:
        for meter, price in (("input", "0.15"), ("cached_input", "0.05"), ("output", "2.5")):
            body = {"model": "scripted", "meter": meter, "price_per_million": price}
            assert server.http.post("/v1/admin/prices", json=body).status_code == 201
        yield server


@pytest.fixture
def url(server: ForkedServer) -> str:
    """Where the page is."""
    return str(server.http.base_url).rstrip("/")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> "AsyncIterator[Browser]":
    """Chromium."""
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        pytest.skip(f"no browser is installed: none of {', '.join(_NAMES)}")
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=executable, args=[*_FLAGS])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def spare(browser: "Browser") -> AsyncIterator[Spare]:
    """Where a test's pages come from."""
    spare = Spare(browser)
    yield spare
    await spare.close()


@dataclass(slots=True)
class Tenant:
    """Somebody's own documents, conversations and bills; they are its administrator."""

    key: str
    http: httpx.Client
    name: str = "default"

    def upload(self, name: str, content: str | bytes, **fields: str) -> str:
        """A document's id once it is indexed."""
        content = content.encode() if isinstance(content, str) else content
        response = self.http.post("/v1/documents", files={"file": (name, content)}, data={"wait": "30", **fields})
        body = response.json()
        assert body.get("status") == "indexed", body
        return str(body["id"])

    def key_of(self, user_id: str) -> "Tenant":
        """The same with a key of a member's."""
        body = {"name": user_id, "role": "member", "user_id": user_id}
        return Tenant(self.http.post("/v1/admin/keys", json=body).json()["secret"], self.http, self.name)

    def session(self) -> str:
        """The secret of a new session, as a browser has it that was signed in before."""
        response = self.http.post("/v1/session", headers={"Authorization": f"Bearer {self.key}"})
        assert response.status_code == 201, response.text
        secret = response.cookies[COOKIE]
        self.http.cookies.clear()  # the key is what these requests come with
        return secret

    def ask(self, question: str) -> dict[str, Any]:
        """The answer's body."""
        response = self.http.post("/v1/ask", json={"question": question})
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body


@pytest.fixture(scope="session")
def plain() -> ssl.SSLContext:
    """What clients of the server are made with. It trusts nobody: reading certificates takes longer than a request."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.fixture
def tenant(server: ForkedServer, url: str, plain: ssl.SSLContext) -> Iterator[Tenant]:
    """A new one."""
    name = f"house-{next(_tenants)}"
    assert server.http.post("/v1/admin/tenants", json={"id": name, "name": f"House {name}"}).status_code == 201
    key = server.http.post(f"/v1/admin/tenants/{name}/keys", json={"user_id": "ada"}).json()["secret"]
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, verify=plain, timeout=60) as http:
        yield Tenant(key, http, name)


@pytest.fixture
def operator(server: ForkedServer) -> Tenant:
    """The operator of the server, in the tenant that every installation has."""
    return Tenant(ADMIN_KEY, server.http)


@dataclass
class Window:
    """What went wrong in the pages of a test, and whom they asked. Without slots: playwright notes what it calls."""

    url: str
    outside: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)

    def excuse(self, words: str) -> None:
        """The browser may complain with these words, or show a dialog of this type: the test brings it about."""
        self.excused.append(words)

    def watch(self, page: "Page") -> None:
        """Write down what happens in a page."""
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"an error nobody caught: {error}"))
        page.on("crash", lambda page: self.problems.append("the page crashed"))
        page.on("dialog", self._interrupted)

    def asked(self, address: str) -> None:
        """Write down a request, if it is to somewhere else."""
        if re.match("(?:http|ws)s?:", address) and not address.startswith(f"{self.url}/"):
            self.outside.append(address)

    def _interrupted(self, dialog: "Dialog") -> None:
        if dialog.type not in self.excused:
            self.problems.append(f"a dialog of the browser, {dialog.type}: {dialog.message}")

    def _said(self, message: "ConsoleMessage") -> None:
        if message.type in {"error", "warning"} and not any(words in message.text for words in self.excused):
            self.problems.append(f"{message.type} in the console: {message.text} {message.location['url']}")


@pytest_asyncio.fixture(loop_scope="session")
async def window(url: str) -> AsyncIterator[Window]:
    """Watches every page of a test: in the end nothing went wrong, and nobody else was asked for anything."""
    window = Window(url)
    yield window
    assert window.outside == []
    assert window.problems == []


Opening = Callable[..., Awaitable["Page"]]


async def _close(context: "BrowserContext") -> None:
    """Close a browser. The error of a route's handler that still waits for the server is ignored."""
    for page in context.pages:
        await page.unroute_all(behavior="ignoreErrors")
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(spare: Spare, url: str, window: Window) -> AsyncIterator[Opening]:
    """A function that opens the page in a browser of its own, signed in where it is given a key."""
    async with AsyncExitStack() as stack:

        async def open_page(
            tenant: Tenant | None = None,
            place: str = "#/",
            *,
            width: int = WIDTH,
            height: int = HEIGHT,
            scheme: str = "light",
        ) -> "Page":
            page = await spare.take()
            context = page.context
            stack.push_async_callback(_close, context)
            window.watch(page)
            context.on("page", window.watch)
            context.on("request", lambda request: window.asked(request.url))
            await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
            await context.route(re.compile(rf"^(?!{re.escape(url)}/)(?:http|ws)s?:"), lambda route: route.abort())
            if (width, height) != (WIDTH, HEIGHT):
                await page.set_viewport_size({"width": width, "height": height})
            if scheme == "dark":
                await page.emulate_media(color_scheme="dark")
            if tenant is not None:
                await context.add_cookies(
                    [{"name": COOKIE, "value": tenant.session(), "url": url, "httpOnly": True, "sameSite": "Strict"}]
                )
            await page.goto(f"{url}/{place}", wait_until="commit")
            if tenant is not None:
                await seen(page, "header nav")
            return page

        yield open_page
