"""The one place that reads the environment. Values are frozen, checked once, and say their unit."""

from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import available_timezones

from platformdirs import user_cache_path, user_data_path
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import SetupError

DEFAULT_EMBEDDER = "all-MiniLM-L6-v2"
DEFAULT_GENERATOR = "SmolLM2-135M-Instruct"
EXTRACTIVE = "extractive"

# Names for every interface; nothing is bound here.
_ON_THIS_MACHINE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104


class Settings(BaseSettings):
    """Every setting, from `FOOTNOTE_*` variables or a `.env` file in the working directory."""

    model_config = SettingsConfigDict(env_prefix="FOOTNOTE_", env_file=".env", frozen=True, extra="forbid")

    data_dir: Path = Field(
        default_factory=lambda: user_data_path("footnote"),
        description="Folder for the database, uploaded files and the vector index.",
    )
    models_dir: Path = Field(
        default_factory=lambda: user_cache_path("footnote") / "models",
        description="Folder `footnote models fetch` fills; may be shared by several installations.",
    )
    database_url: str = Field(
        default="",
        description="SQLAlchemy URL, sqlite:///… or postgresql+psycopg://…; empty means SQLite inside the data dir.",
    )
    embedder: str = Field(
        default=DEFAULT_EMBEDDER, description="Embedding model: a default's name, a folder, or a Hugging Face id."
    )
    generator: str = Field(
        default=DEFAULT_GENERATOR,
        description="Generation model: a default's name, a folder, or a Hugging Face id; extractive quotes the best "
        "sentences without a language model.",
    )
    adapter: str = Field(
        default="auto",
        description="LoRA adapter merged into the generator: auto (the one that comes with Footnote, where the "
        "generator is its base model and a reader points at answers), none, or a folder.",
    )
    reader: str = Field(
        default="auto",
        description="Span reader that points at answers in what was found: auto (the one that comes with Footnote, "
        "where the embedder is its base model), none, or a folder.",
    )
    reranker: str = Field(
        default="",
        description="Cross-encoder that puts the best hits in order: a folder or a Hugging Face id; empty is off.",
    )
    verifier: str = Field(
        default="",
        description="Cross-encoder that judges whether passages support an answer: a folder or a Hugging Face id; "
        "empty leaves that to words and the embedder.",
    )
    strict: bool = Field(
        default=False, description="Leave out of answers what no passage is found to support, unless a request says no."
    )
    unconfirmed: Literal["auto", "keep", "quote"] = Field(
        default="auto",
        description="Answers of which nothing could be verified: keep them as they are, or quote what the documents "
        "say behind them; auto quotes where the generator is the default one.",
    )
    rerank_candidates: int = Field(default=20, ge=2, le=1000, description="Hits the reranker reads per question.")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where the models run.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="Precision of the models' weights; auto picks bfloat16 where the hardware has it."
    )
    embedder_dtype: Literal["auto", "float32", "bfloat16", "float16", "int8"] = Field(
        default="auto",
        description="Precision of the embedder alone; auto follows dtype, int8 needs a CPU with AVX512-VNNI "
        "and an index of its own.",
    )
    embedder_dimensions: int | None = Field(
        default=None,
        ge=8,
        description="Keep only so many of the embedder's dimensions, for models trained to allow it (Matryoshka); "
        "needs an index of its own.",
    )
    index_device: Literal["cpu", "cuda"] = Field(
        default="cpu",
        description="Where vectors are searched; cuda keeps a copy of the index on a GPU, needs FAISS built for it.",
    )
    lexical: Literal["auto", "sql", "tantivy"] = Field(
        default="auto",
        description="Which index ranks by words: the database's own, one beside it that is faster when large, "
        "or by size.",
    )
    weights: Literal["native", "int8", "int4"] = Field(
        default="native", description="Storage of the generator's weights: as dtype says, or quantised to integers."
    )
    remote_url: str = Field(
        default="",
        description="Base URL of an OpenAI-compatible server that generates instead of this process; "
        "generator then names its tokenizer.",
    )
    remote_model: str = Field(default="", description="The model's name on the remote server.")
    remote_api_key: SecretStr | None = Field(default=None, description="Key sent to the remote server.")
    admin_key: SecretStr | None = Field(
        default=None,
        description="Becomes the first admin key at the first start (at least 16 characters); "
        "when unset, one is made and printed once.",
    )
    session_hours: float = Field(
        default=12.0, gt=0, le=720, description="How long somebody who signed in to the web page stays signed in."
    )
    secure_cookies: bool = Field(
        default=False,
        description="Mark session cookies Secure also on requests that came over http, behind a proxy that ends TLS.",
    )
    oidc_issuer: str = Field(
        default="",
        description="OpenID provider that people may sign in with, such as https://login.example.org; empty is none.",
    )
    oidc_client_id: str = Field(default="", description="Our client id at the OpenID provider.")
    oidc_client_secret: SecretStr | None = Field(default=None, description="Our client secret at the OpenID provider.")
    oidc_redirect_url: str = Field(
        default="",
        description="Where the provider sends people back to, …/v1/session/oidc/callback; empty takes the address that "
        "the request came to.",
    )
    oidc_tenant: str = Field(default="default", min_length=1, description="Tenant of those who sign in with OpenID.")
    oidc_role: Literal["member", "reader"] = Field(default="reader", description="Their role.")
    oidc_admins: str = Field(
        default="",
        description="Who of them are administrators: subjects or verified e-mail addresses, comma-separated.",
    )
    host: str = Field(default="127.0.0.1", description="Address `footnote serve` listens on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port `footnote serve` listens on; 0 picks a free one.")
    max_upload_mb: int = Field(default=100, ge=1, le=10_000, description="Largest accepted upload, in MiB.")
    archive_members: int = Field(
        default=1000, ge=1, le=10_000, description="Most files in an uploaded zip archive; one with more is refused."
    )
    web_pages: bool = Field(
        default=False,
        description="Whether documents may be fetched from the web by their address; only public addresses, "
        "on ports 80 and 443.",
    )
    max_context_tokens: int = Field(
        default=3000, ge=64, description="Default token budget of the sources in a prompt (generator tokens)."
    )
    prompt_file: str = Field(
        default="", description="TOML file with your own wording of the prompt; what it leaves out stays."
    )
    highlight_tokens: int = Field(
        default=120,
        ge=0,
        description="Tokens of the context that repeat its most fitting sentences behind the question; 0 is off.",
    )
    overflow: Literal["drop", "summarise"] = Field(
        default="drop",
        description="What becomes of passages the token budget has no room for: left out, or summarised by the "
        "generator, which takes its time and is on the bill.",
    )
    history_tokens: int = Field(
        default=500,
        ge=0,
        le=1_000_000,
        description="Most tokens of earlier turns that a question in a conversation brings along (generator tokens).",
    )
    followup: Literal["rules", "model"] = Field(
        default="rules",
        description="What rewrites follow-up questions to stand alone: rules, or the generator where the rules find "
        "something to rewrite, which takes its time and is on the bill.",
    )
    max_output_tokens: int = Field(default=512, ge=1, description="Default limit of generated tokens per answer.")
    context_window: int | None = Field(
        default=None, ge=256, description="Caps the model's context window, in tokens, to save memory."
    )
    max_running: int = Field(default=8, ge=1, le=1024, description="Sequences generated at once.")
    step_tokens: int = Field(
        default=512,
        ge=1,
        le=1_000_000,
        description="Tokens fed to the model in one step; longer prompts are read in chunks.",
    )
    kv_cache_mb: int | None = Field(
        default=None, ge=1, description="Most memory of keys and values, in MiB; unset, half of what is free."
    )
    speculation: bool = Field(
        default=True, description="Draft tokens and verify several in one step where that pays; answers stay the same."
    )
    draft_model: str = Field(
        default="",
        description="A smaller model with the generator's tokenizer that drafts; empty drafts from the sources' text.",
    )
    max_waiting: int = Field(
        default=64, ge=1, le=100_000, description="Requests that may wait; more are refused (503)."
    )
    max_waiting_tokens: int = Field(
        default=131_072,
        ge=1,
        le=1_000_000_000,
        description="Prompt tokens that may wait for the generator; more are refused (503).",
    )
    write_timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="Longest a reader may take nothing of a response, in seconds; then the connection is closed.",
    )
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="Requests a key may make in any minute; unset is no limit."
    )
    tokens_per_minute: int | None = Field(
        default=None, ge=1, description="Tokens, input and output, a key may use in any minute; unset is no limit."
    )
    concurrent_requests: int | None = Field(
        default=None, ge=1, description="Requests of a key at work at once; unset is no limit."
    )
    tenant_requests_per_minute: int | None = Field(
        default=None, ge=1, description="As requests_per_minute, of all keys of a tenant together."
    )
    tenant_tokens_per_minute: int | None = Field(
        default=None, ge=1, description="As tokens_per_minute, of all keys of a tenant together."
    )
    tenant_concurrent_requests: int | None = Field(
        default=None, ge=1, description="As concurrent_requests, of all keys of a tenant together."
    )
    failed_logins_per_minute: int = Field(
        default=30,
        ge=1,
        le=1_000_000,
        description="Wrong keys a client address may send in any minute; then it is refused (429).",
    )
    answer_deadline_s: float = Field(
        default=600.0,
        gt=0,
        le=86_400,
        description="Longest an answer may take, in seconds from the request's arrival; then it ends with 504.",
    )
    min_evidence: float = Field(
        default=0.3,
        ge=-1.0,
        le=1.0,
        description="Score in [0, 1], of cosine similarity and shared words, that a passage must reach to count as "
        "evidence; below it no answer is generated.",
    )
    abstention_threshold: Literal["model"] | Annotated[float, Field(gt=0, le=1)] = Field(
        default="model",
        description="Probability of refusing, by the model's own reckoning before its first word, from which on it "
        "refuses and below which it answers; model leaves it to the model.",
    )
    chunk_tokens: int = Field(
        default=256,
        ge=32,
        le=8192,
        description="Largest chunk, in embedder tokens; never above the embedder's own limit.",
    )
    chunk_overlap: int = Field(default=32, ge=0, le=1024, description="Tokens neighbouring chunks share.")
    ocr: Literal["auto", "off"] = Field(
        default="auto",
        description="Whether scanned pages of PDFs are recognised: auto, when the extra `ocr` is installed, or off.",
    )
    parse_seconds: float = Field(default=120.0, gt=0, description="Longest a file may take to parse, in seconds.")
    parse_memory_mb: int = Field(default=2048, ge=512, description="Most memory a parser process may hold, in MiB.")
    parsers: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Files read at once, each by a parser process of its own; unset, two, or one on a single core.",
    )
    reconcile_hour: Literal["off"] | Annotated[int, Field(ge=0, le=23)] = Field(
        default=3,
        description="Hour of the day, in the machine's time zone, at which database, files and index are compared and "
        "what is safe to mend is mended; off leaves that to `footnote check --repair`.",
    )
    reporting_zone: str = Field(
        default="UTC", description="IANA time zone in which usage reports and budgets begin their days unless told."
    )
    currency: str = Field(
        default="usd", pattern=r"^[a-z]{3}$", description="Currency of all prices and costs, ISO 4217 in lower case."
    )
    webhook_hosts: str = Field(
        default="",
        description="Hosts, or host:port, comma-separated, to which budget alerts may be posted although they are not "
        "public addresses.",
    )
    drain_s: int = Field(
        default=30,
        ge=0,
        le=3600,
        description="Seconds that running requests have to finish after SIGTERM; then their streams end with an error.",
    )
    forwarded_allow_ips: str = Field(
        default="127.0.0.1",
        description="Addresses or networks of reverse proxies, comma-separated, whose X-Forwarded-For and "
        "X-Forwarded-Proto are believed; * believes everyone.",
    )
    root_path: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="Path under which a reverse proxy serves Footnote, and which it takes off; such as /footnote.",
    )
    keep_alive_s: int = Field(
        default=75, ge=1, le=3600, description="Seconds an idle connection is kept open; more than your proxy keeps it."
    )
    tls_cert: Path | None = Field(
        default=None, description="PEM file of the certificate and its chain, to serve HTTPS without a proxy."
    )
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's private key, not encrypted.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log level."
    )
    log_format: Literal["console", "json"] = Field(default="console", description="How log lines are written.")

    otlp_endpoint: str = Field(
        default="",
        description="Base address of an OpenTelemetry collector that takes traces by OTLP/HTTP, such as "
        "http://127.0.0.1:4318; empty is off. Needs the extra `otel`.",
    )
    trace_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of requests that are traced, in [0, 1]; a caller's own decision (traceparent) is followed.",
    )

    @field_validator("admin_key")
    @classmethod
    def _long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < 16:
            raise ValueError("must have at least 16 characters")
        return key

    @field_validator("reporting_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        if name not in available_timezones():
            raise ValueError("is not a time zone of the IANA database, such as Europe/Berlin")
        return name

    @model_validator(mode="after")
    def _go_together(self) -> "Settings":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("FOOTNOTE_TLS_CERT and FOOTNOTE_TLS_KEY go together")
        if self.remote_url and not self.remote_url.startswith(("http://", "https://")):
            raise ValueError("FOOTNOTE_REMOTE_URL must begin with http:// or https://")
        if self.remote_url and not self.remote_model:
            raise ValueError("FOOTNOTE_REMOTE_URL needs FOOTNOTE_REMOTE_MODEL")
        if not self.remote_url and (self.remote_model or self.remote_api_key is not None):
            raise ValueError("FOOTNOTE_REMOTE_MODEL and FOOTNOTE_REMOTE_API_KEY need FOOTNOTE_REMOTE_URL")
        if self.remote_url and self.adapter not in ("auto", "none"):
            raise ValueError("FOOTNOTE_ADAPTER names a folder, which FOOTNOTE_REMOTE_URL cannot use")
        if self.extractive:
            for name, given in (
                ("REMOTE_URL", self.remote_url),
                ("DRAFT_MODEL", self.draft_model),
                ("ADAPTER", self.adapter not in ("auto", "none")),
                ("OVERFLOW=summarise", self.overflow == "summarise"),
                ("FOLLOWUP=model", self.followup == "model"),
            ):
                if given:
                    raise ValueError(f"FOOTNOTE_{name} needs a language model, FOOTNOTE_GENERATOR=extractive has none")
        if self.oidc_issuer and not self.oidc_issuer.startswith(("https://", "http://")):
            raise ValueError("FOOTNOTE_OIDC_ISSUER must begin with https:// (or http://, to try it out)")
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("FOOTNOTE_OIDC_ISSUER needs FOOTNOTE_OIDC_CLIENT_ID")
        if self.draft_model and not self.speculation:
            raise ValueError("FOOTNOTE_DRAFT_MODEL needs FOOTNOTE_SPECULATION")
        if self.step_tokens < self.max_running:
            raise ValueError("FOOTNOTE_STEP_TOKENS must be at least FOOTNOTE_MAX_RUNNING")
        return self

    @property
    def quotes_unconfirmed(self) -> bool:
        """Whether quotes follow an answer of which nothing is verified."""
        if self.unconfirmed == "auto":
            return self.generator == DEFAULT_GENERATOR and not self.remote_url
        return self.unconfirmed == "quote" and not self.extractive

    @property
    def extractive(self) -> bool:
        """Whether answers are quoted and no language model is loaded."""
        return self.generator == EXTRACTIVE

    def address(self, *, port: int | None = None) -> str:
        """The URL at which a browser on this machine opens the server, without a slash at its end.

        Args:
            port: The port that was bound, where it is not the configured one.
        """
        host = _ON_THIS_MACHINE.get(self.host, f"[{self.host}]" if ":" in self.host else self.host)
        scheme = "http" if self.tls_cert is None else "https"
        return f"{scheme}://{host}:{self.port if port is None else port}"

    @property
    def resolved_database_url(self) -> str:
        """`database_url`, or SQLite inside the data dir."""
        return self.database_url or f"sqlite:///{(self.data_dir / 'footnote.db').absolute()}"


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment, `overrides` (from command-line options) winning.

    Raises:
        SetupError: A setting is unknown or out of range; the message names the variable.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_input=False, include_url=False):
            message = problem["msg"].removeprefix("Value error, ")
            if not problem["loc"]:  # about several settings, which the message names
                lines.append(message)
                continue
            name = "FOOTNOTE_" + "_".join(str(part) for part in problem["loc"]).upper()
            lines.append(f"{name}: {message}")
        raise SetupError("Settings are not usable. " + "; ".join(lines) + ".") from None
