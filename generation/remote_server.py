"""The generation server over HTTP: completions as streams of chunks, and failures as sentences fit to show."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx

from generation.errors import ModelUnavailable
from generation.remote_chat import parse_chat_chunk
from generation.remote_config import RemoteConfig
from generation.remote_protocol import ProtocolBroken, StreamChunk, parse_chunk
from generation.server_events import EventDecoder, EventTooLarge

_LONGEST_RETRY_AFTER_S = 10.0
_ROUTES: Mapping[str, tuple[str, Callable[[bytes], StreamChunk]]] = {
    "completions": ("completions", parse_chunk),
    "chat": ("chat/completions", parse_chat_chunk),
}


class ServerFailed(Exception):
    """A request failed. The message gives the reason without the server's own text, which may hold secrets."""


class ServerRefused(ServerFailed):
    """The server does not take this request (status 400 or 422); nothing was generated."""


class ServerBusy(ServerFailed):
    """The server is busy; retry after `retry_after_s` seconds, if given."""

    def __init__(self, status: int, retry_after_s: float | None) -> None:
        super().__init__(f"The generation server is overloaded (status {status}).")
        self.retry_after_s = retry_after_s


class CompletionServer:
    """Client of one server, with a new connection for each request. Used from one event loop.

    Reusing connections saves little compared with the seconds of an answer, and loses a request that is sent
    just as the server closes an idle one. A client for each request also keeps cancellation safe: a
    task that is cancelled while httpx closes a connection would leak a place of a shared pool.
    """

    def __init__(self, config: RemoteConfig) -> None:
        """Nothing is sent yet.

        Raises:
            ModelUnavailable: the file of certificate authorities cannot be read.
        """
        self._config = config
        self._settings = _client_settings(config)
        self._route, self._parse = _ROUTES[config.api]
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def complete(
        self, body: dict[str, Any], *, traceparent: str | None = None
    ) -> AsyncGenerator[AsyncIterator[StreamChunk], None]:
        """Open a completion and yield its chunks until its end. Leaving the block closes the connection early.

        Raises:
            ServerBusy: it was refused for now; nothing was generated.
            ServerRefused: it was refused as it is; nothing was generated.
            ServerFailed: it was refused, or broke; also from the iterator.
        """
        headers = {"traceparent": traceparent} if traceparent is not None else {}
        try:
            async with (
                self._client() as http,
                http.stream("POST", self._config.url(self._route), json=body, headers=headers) as response,
            ):
                if response.status_code != HTTPStatus.OK:
                    raise _refusal(response)
                async with aclosing(_chunks(response, self._parse)) as chunks:
                    yield chunks
        except (ProtocolBroken, EventTooLarge):
            raise ServerFailed("The generation server failed or sent something unexpected.") from None
        except httpx.ReadTimeout:
            raise ServerFailed(
                f"The generation server was silent for {self._config.read_timeout_s:g} seconds."
            ) from None
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise ServerFailed("The generation server cannot be reached.") from None
        except httpx.HTTPError:
            raise ServerFailed("The connection to the generation server was lost.") from None

    async def check(self) -> str | None:
        """The server's error, None when it answers."""
        try:
            async with self._client() as http:
                response = await http.get(self._config.url("models"), timeout=self._config.connect_timeout_s)
        except httpx.HTTPError:
            return "cannot be reached"
        return None if response.status_code == HTTPStatus.OK else f"answers with status {response.status_code}"

    async def close(self) -> None:
        """Wait for the connections that are being closed."""
        await asyncio.gather(*self._closing, return_exceptions=True)

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[httpx.AsyncClient, None]:
        http = httpx.AsyncClient(**self._settings)
        try:
            yield http
        finally:
            closing = asyncio.get_running_loop().create_task(http.aclose())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            await asyncio.shield(closing)  # whoever is cancelled again meanwhile, it is closed


def fetch_context_window(config: RemoteConfig) -> int:
    """Ask the server for its model's context window in `GET /models`.

    vLLM and SGLang list `max_model_len`; llama.cpp `meta.n_ctx`, which is the window of one of its slots.

    Raises:
        ModelUnavailable: the server cannot be reached, refuses, does not list the model or not this length.
    """
    try:
        with httpx.Client(**_client_settings(config)) as http:
            response = http.get(config.url("models"), timeout=config.connect_timeout_s)
    except httpx.HTTPError:
        raise ModelUnavailable("The generation server cannot be reached; is it running, and its URL right?") from None
    if response.status_code != HTTPStatus.OK:
        raise ModelUnavailable(
            f"The generation server answers with status {response.status_code} when asked for its models; "
            "check its URL (most end in /v1) and key."
        )
    try:
        models = {model["id"]: _window(model) for model in response.json()["data"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelUnavailable("The generation server's list of models cannot be read; check its URL.") from None
    if config.model not in models:
        raise ModelUnavailable(f"The generation server does not serve a model named {config.model!r}.")
    window = models[config.model]
    if not isinstance(window, int) or window < 2:
        raise ModelUnavailable("The generation server does not tell its context window; set it in the configuration.")
    return window


def _window(model: dict[str, Any]) -> object:
    listed = model.get("max_model_len")
    return listed if listed is not None else (model.get("meta") or {}).get("n_ctx")


async def _chunks(response: httpx.Response, parse: Callable[[bytes], StreamChunk]) -> AsyncGenerator[StreamChunk, None]:
    decoder, ended = EventDecoder(), False
    async for received in response.aiter_bytes():
        for event in decoder.feed(received):
            if event.name == "error":
                raise ProtocolBroken
            if event.data.strip() != b"[DONE]":
                chunk = parse(event.data)
                ended = ended or chunk.finish_reason is not None
                yield chunk
            elif ended:
                return
    if not ended:  # a connection closed in good order is no end of an answer
        raise httpx.RemoteProtocolError("the stream ended early")


def _refusal(response: httpx.Response) -> ServerFailed:
    status = response.status_code
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        named = response.headers.get("retry-after", "")
        return ServerBusy(status, min(float(named), _LONGEST_RETRY_AFTER_S) if named.isdecimal() else None)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return ServerFailed(f"The generation server did not accept Footnote's key (status {status}).")
    if status == HTTPStatus.NOT_FOUND:
        return ServerFailed(f"The generation server does not know the model or the route (status {status}).")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerFailed(f"The generation server failed (status {status}).")
    if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
        return ServerRefused(f"The generation server refused the request (status {status}).")
    return ServerFailed(f"The generation server refused the request (status {status}).")


def _client_settings(config: RemoteConfig) -> dict[str, Any]:
    try:
        if not config.verify_tls:
            verify = httpx.create_ssl_context(verify=False)
        elif config.ca_file:
            verify = ssl.create_default_context(cafile=config.ca_file)
        else:
            verify = httpx.create_ssl_context(trust_env=False)
    except OSError:
        raise ModelUnavailable("The generation server's file of certificate authorities cannot be read.") from None
    return {
        "headers": {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {},
        "timeout": httpx.Timeout(config.read_timeout_s, connect=config.connect_timeout_s),
        "verify": verify,
        "follow_redirects": False,  # the key is for this server only
        "trust_env": False,  # a proxy named in the environment would see every prompt
    }
