"""The HTTP client of the command line and the MCP server; it can start the application in this process."""

import secrets
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx

from app.backup.data_dir import is_locked
from app.errors import AppError, SetupError
from app.local_server import local_server
from app.settings import Settings, load_settings
from app.types import ServerTarget

_ALIVE_SECONDS = 5.0  # for a running server to say that it lives


class Refused(AppError):
    """The server answered with an error; the message is the problem's detail.

    `status` is the HTTP status, None when no answer came; `retry_after_s` is the server's `Retry-After`.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class Client:
    """An HTTP client that raises `Refused` for error responses."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def call(self, method: str, path: str, **options: Any) -> Any:
        """Sends a request and returns the JSON body of the response.

        Raises:
            Refused: The server refused, cannot be reached or sent no JSON; or an id in the path is none.
        """
        if not {"", ".", ".."}.isdisjoint(path.split("/")[1:]):  # they would lead to another resource
            raise Refused("There is nothing with this id.", status=404)
        try:
            response = self.http.request(method, path, **options)
        except httpx.LocalProtocolError:
            # A file that changed during the upload; the status for a body of another length than declared.
            raise Refused("The file changed while it was being sent.", status=400) from None
        except httpx.HTTPError as error:
            raise Refused(f"The server cannot be reached: {type(error).__name__}.") from None
        if not response.is_success:
            raise refused(response)
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise Refused(
                "The server's answer cannot be read; is this the address of a Footnote server?",
                status=response.status_code,
            ) from None


def refused(response: httpx.Response) -> Refused:
    """Converts an error response into an exception."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = {}
    detail = body.get("detail") if isinstance(body, dict) else None
    elsewhere = ", which leads to another address than was given" if response.has_redirect_location else ""
    pause = response.headers.get("Retry-After", "")  # seconds (RFC 9110, 10.2.3); our server sends no dates
    return Refused(
        str(detail or f"The server answered {response.status_code}{elsewhere}."),
        status=response.status_code,
        retry_after_s=float(pause) if pause.isdecimal() else None,
    )


@contextmanager
def connect(target: ServerTarget, *, with_models: bool = False, settings: Settings | None = None) -> Iterator[Client]:
    """Opens a client for the target: a server, the one that runs over the data dir, or an application in this process.

    The application runs until the block ends.

    Args:
        target: Where to go.
        with_models: Whether a local application must be able to search, answer and ingest.
        settings: For a local application; default: from the environment.

    Raises:
        SetupError: `--url` without a key, or the local application cannot start.
    """
    if target.url is not None:
        if not target.key:
            raise SetupError("Pass the server's API key with --key or FOOTNOTE_KEY.")
        with _client(target.url, target.key) as http:
            yield Client(http)
        return
    settings = settings or load_settings()
    running = _running(settings.data_dir)
    with closing(running) if running is not None else _local(settings, with_models=with_models) as http:
        yield Client(http)


def _running(data_dir: Path) -> httpx.Client | None:
    """A client of the server that runs over a data dir, None where none answers there."""
    server = local_server(data_dir)
    if server is None or not is_locked(data_dir):
        return None  # it was killed, and its address may be somebody else's
    try:
        http = _client(server.url, server.key, verify=server.verify())
    except OSError:
        return None
    with suppress(httpx.HTTPError):  # it is starting or stopping
        if http.get("/healthz", timeout=_ALIVE_SECONDS).is_success:
            return http
    http.close()
    return None


def _client(url: str, key: str, *, verify: ssl.SSLContext | bool = True) -> httpx.Client:
    return httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {key}"},
        timeout=httpx.Timeout(600, connect=10),
        trust_env=False,
        verify=verify,
    )


@contextmanager
def _local(settings: Settings, *, with_models: bool) -> Iterator[httpx.Client]:
    """Runs the application in a thread on a loopback port, with a temporary key."""
    import uvicorn

    from app.api.application import create_app
    from app.server.bootstrap import build
    from app.telemetry.logs import warnings_alone

    secret = secrets.token_urlsafe(32)
    # Built here and not in the server's thread, so that a SetupError reaches the user as one sentence.
    with warnings_alone(), build(settings, with_models=with_models, local_secret=secret) as state:
        app = create_app(lambda: nullcontext(state), version=state.serving.version)
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise SetupError("The local application did not start.")
                time.sleep(0.01)
            with _client(f"http://127.0.0.1:{listener.getsockname()[1]}", secret) as http:
                yield http
        finally:
            server.should_exit = True
            thread.join(timeout=10)
            listener.close()
