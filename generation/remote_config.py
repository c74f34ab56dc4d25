"""The configuration of a remote generation server: a frozen value with units."""

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConfig:
    """One server with OpenAI's completions protocol: vLLM, SGLang, llama.cpp's server; or with its chat completions.

    For completions its model must have the tokenizer Footnote counts with: prompts are sent as token ids.

    Attributes:
        base_url: Where its routes begin, usually ending in `/v1`. Credentials do not belong here.
        model: The model's name at the server.
        api: Whether prompts are sent as token ids (`completions`) or as messages (`chat`).
        api_key: Sent as a bearer token; None sends none.
        context_window: In tokens, prompt and output together; None asks the server, which vLLM,
            SGLang and llama.cpp answer in `/models` (older builds of llama.cpp do not).
        max_running: Most requests at the server at once.
        max_waiting: Most sequences in the waiting line; the next one is refused.
        max_waiting_tokens: Most prompt tokens waiting; more are refused, unless the queue is empty.
        connect_timeout_s: Seconds a connection may take, and the answer to a health check.
        read_timeout_s: Read timeout in seconds, before the first token and between tokens.
        retry_s: Seconds during which a request refused with 429 or 503 is retried; 0 does not retry.
        health_interval_s: Seconds between two looks at whether the server answers.
        reader_grace_s: See `EngineConfig.reader_grace_s`.
        verify_tls: Whether the server's certificate must be valid.
        ca_file: PEM file of the authorities that may have signed it; None takes the well-known ones.
    """

    base_url: str
    model: str
    api: Literal["completions", "chat"] = "completions"
    api_key: str | None = field(default=None, repr=False)
    context_window: int | None = None
    max_running: int = 32
    max_waiting: int = 64
    max_waiting_tokens: int = 131_072
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 120.0
    retry_s: float = 20.0
    health_interval_s: float = 5.0
    reader_grace_s: float = 5.0
    verify_tls: bool = True
    ca_file: str | None = None

    def __post_init__(self) -> None:
        _check_url(self.base_url)
        if not self.model:
            raise ValueError("model must name a model of the server")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable() and self.api_key):
            raise ValueError("api_key must be printable ASCII")  # anything else cannot go into a header
        if self.context_window is not None and self.context_window < 2:
            raise ValueError(f"context_window must be at least 2 tokens, got {self.context_window}")
        if self.max_running < 1:
            raise ValueError(f"max_running must be at least 1 sequence, got {self.max_running}")
        if self.max_waiting < 1:
            raise ValueError(f"max_waiting must be at least 1 sequence, got {self.max_waiting}")
        if self.max_waiting_tokens < 1:
            raise ValueError(f"max_waiting_tokens must be at least 1, got {self.max_waiting_tokens}")
        for name in ("connect_timeout_s", "read_timeout_s", "health_interval_s"):
            if not getattr(self, name) > 0:  # also refuses NaN
                raise ValueError(f"{name} must be above 0 seconds, got {getattr(self, name)}")
        for name in ("retry_s", "reader_grace_s"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0 seconds, got {getattr(self, name)}")

    def url(self, route: str) -> str:
        """Where a route is, such as "completions"."""
        return f"{self.base_url.rstrip('/')}/{route}"


def _check_url(url: str) -> None:
    # None of these sentences repeats the URL: it may hold a password.
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("base_url is not a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("base_url must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("base_url must not hold credentials; the key has a setting of its own")
    if parts.query or parts.fragment:
        raise ValueError("base_url must not hold a query or a fragment")
