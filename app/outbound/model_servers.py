"""Asks a server of language models whether it speaks OpenAI's protocol; on the public internet only unless allowed.

The checks are those of webhooks (`app.outbound.webhooks`): the address is parsed once and resolved once, the connection
goes to the resolved address, and redirects are not followed. Of a response only the names of models are passed on.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import httpcore
import httpx

from app.errors import UrlNotAllowed, UrlNotFetched
from app.outbound.web_pages import Guard, Resolve, addresses_of, read_address
from app.outbound.webhooks import DEFAULT_PORTS, named_hosts

_SECONDS = 15.0  # for one test in all
_ANY_PORT = range(1, 65_536)
_MOST_BYTES = 1 << 20  # of a response
_MOST_MODELS, _NAME_CHARS = 100, 200
_DOES: Mapping[str, str] = {
    "completions": "completes prompts of this model",
    "chat": "answers messages to this model; it takes no prompt of token numbers, so no tokenizer is needed here",
}
_ALLOW = "Whoever runs Footnote can allow it: FOOTNOTE_WEBHOOK_HOSTS takes host or host:port."


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a server lists; `context_window` in tokens where it tells."""

    id: str
    context_window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTest:
    """The answer of a tested server of models.

    `status` is the HTTP status of its list of models, None where it could not be reached. `completes` is whether it
    completed one token for the model, None where it was not asked to; `api` is how: a prompt of token numbers, or
    messages. `detail` says the result in one sentence.
    """

    status: int | None
    models: tuple[ServedModel, ...] = ()
    completes: bool | None = None
    api: Literal["completions", "chat"] | None = None
    detail: str

    @property
    def speaks(self) -> bool:
        """Whether it listed models as OpenAI's protocol does."""
        return self.status == httpx.codes.OK and bool(self.models)


class ModelServers:
    """Tests servers of models. Safe to use from any thread.

    Example:
        >>> servers = ModelServers(hosts="gpu.internal:8000")
        >>> servers.test("http://gpu.internal:8000/v1").models
        (ServedModel(id='Qwen/Qwen3-8B', context_window=32768),)
    """

    def __init__(
        self,
        *,
        hosts: str = "",
        configured: str = "",
        resolve: Resolve | None = None,
        backend: httpcore.NetworkBackend | None = None,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Asks nothing yet.

        Args:
            hosts: `host` or `host:port`, comma-separated: servers that need not be public.
            configured: The address that the installation uses already, which is allowed too.
            resolve: Gives the addresses of a host.
            backend: Connects to them.
            seconds: The longest one test may take.
            clock: Seconds that only go forward.

        Raises:
            SetupError: `hosts` cannot be read.
        """
        self._named = set(named_hosts(hosts))
        if configured:
            with suppress(UrlNotAllowed):  # an address with a password in it, say; it is not tested then
                self._named.add(_place(read_address(configured, ports=_ANY_PORT)))
        self._resolve = resolve or addresses_of
        self._backend = backend or httpcore.SyncBackend()
        self._seconds = seconds
        self._clock = clock

    def test(self, url: str, *, model: str | None = None, key: str | None = None) -> ServerTest:
        """Ask for the list of models, and with `model` for one token; `key` is sent as a bearer token.

        Raises:
            UrlNotAllowed: Nothing is asked at this address.
        """
        base, named = self._target(url)
        deadline = self._clock() + self._seconds
        guard = Guard(self._backend, self._resolve, deadline=deadline, clock=self._clock, public_only=not named)
        headers = [("User-Agent", "Footnote"), ("Accept", "application/json"), ("Accept-Encoding", "identity")]
        if key is not None:
            headers.append(("Authorization", f"Bearer {key}"))
        try:
            with httpcore.ConnectionPool(network_backend=guard, http2=False) as pool:
                status, listed = _ask(pool, "GET", base, "models", headers)
                models = _models_in(listed)
                if status != httpx.codes.OK or not models:
                    return ServerTest(status=status, models=models, detail=_refusal(status))
                if model is None:
                    return ServerTest(status=status, models=models, detail="It speaks OpenAI's protocol.")
                if model not in {one.id for one in models}:
                    return ServerTest(status=status, models=models, detail="It does not list this model.")
                api, asked = _completed(pool, base, headers, model)
        except UrlNotAllowed as error:
            raise UrlNotAllowed(f"{error} {_ALLOW}", param="url") from None
        except UrlNotFetched as error:
            return ServerTest(status=None, detail=str(error))
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
            return ServerTest(status=None, detail="The server could not be reached, or it took too long.")
        if api is None:
            detail = f"It lists the model, but answered {asked} when it was asked for one token."
        else:
            detail = f"It speaks OpenAI's protocol and {_DOES[api]}."
        return ServerTest(status=status, models=models, completes=api is not None, api=api, detail=detail)

    def _target(self, url: str) -> tuple[httpx.URL, bool]:
        """The parsed address, and whether the installation allows its host explicitly."""
        location = read_address(url, ports=_ANY_PORT).copy_with(query=None)
        if _place(location) in self._named:
            return location, True
        try:
            return read_address(location), False
        except UrlNotAllowed as error:
            raise UrlNotAllowed(f"{error} {_ALLOW}", param="url") from None


def _place(location: httpx.URL) -> tuple[str, int]:
    return location.host, location.port or DEFAULT_PORTS[location.scheme]


def _completed(
    pool: httpcore.ConnectionPool, base: httpx.URL, headers: list[tuple[str, str]], model: str
) -> tuple[Literal["completions", "chat"] | None, int]:
    """How the server completed one token, None where it did not; and the status of its last answer.

    It is asked as Footnote asks: first a prompt of token numbers, which arrives exactly as it was counted.
    """
    prompt = json.dumps({"model": model, "prompt": [1], "max_tokens": 1}).encode()
    status, body = _ask(pool, "POST", base, "completions", headers, prompt)
    if _has_choices(status, body):
        return "completions", status
    messages = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1})
    status, body = _ask(pool, "POST", base, "chat/completions", headers, messages.encode())
    return ("chat" if _has_choices(status, body) else None), status


def _has_choices(status: int, body: object) -> bool:
    return status == httpx.codes.OK and isinstance(body, dict) and isinstance(body.get("choices"), list)


def _ask(
    pool: httpcore.ConnectionPool,
    method: str,
    base: httpx.URL,
    route: str,
    headers: list[tuple[str, str]],
    content: bytes | None = None,
) -> tuple[int, Any]:
    """The status, and the JSON of the body; None where it is none, or too long."""
    target = httpcore.URL(
        scheme=base.raw_scheme,
        host=base.raw_host,
        port=base.port,
        target=base.raw_path.rstrip(b"/") + f"/{route}".encode(),
    )
    sent = headers if content is None else [*headers, ("Content-Type", "application/json")]
    with pool.stream(method, target, headers=sent, content=content) as response:
        received = b""
        for block in response.iter_stream():
            received += block
            if len(received) > _MOST_BYTES:
                return response.status, None
    try:
        return response.status, json.loads(received)
    except (ValueError, RecursionError):
        return response.status, None


def _models_in(body: Any) -> tuple[ServedModel, ...]:
    """The models of a list in OpenAI's form; the context window as vLLM, SGLang and llama.cpp tell it."""
    listed = body.get("data") if isinstance(body, dict) else None
    if not isinstance(listed, list):
        return ()
    models = []
    for one in listed[:_MOST_MODELS]:
        name = one.get("id") if isinstance(one, dict) else None
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_CHARS or not name.isprintable():
            continue
        meta = one.get("meta")
        told = one.get("max_model_len") or (meta.get("n_ctx_train") if isinstance(meta, dict) else None)
        models.append(ServedModel(name, told if isinstance(told, int) and 0 < told < 1 << 31 else None))
    return tuple(models)


def _refusal(status: int) -> str:
    if status in {401, 403}:
        return f"The server answered {status}: it wants a key, or another one."
    if status == httpx.codes.NOT_FOUND:
        return "There is no list of models at this address; it often ends in /v1."
    if status == httpx.codes.OK:
        return "Something answers there, but it does not list models as OpenAI's protocol does."
    return f"The server answered {status} instead of a list of models."
