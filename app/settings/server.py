"""The server's data dir, addresses, shutdown, and reports about itself."""

import os
from pathlib import Path
from typing import Literal, Self
from zoneinfo import available_timezones

from platformdirs import user_data_path
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

# Names for every interface; nothing is bound here.
_ON_THIS_MACHINE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104


class ServerSettings(BaseModel, frozen=True):
    """Data dir and database, address and proxies, shutdown, accounting zone and currency, logs and traces."""

    data_dir: Path = Field(
        default_factory=lambda: user_data_path("footnote"),
        description="Folder for the database, uploaded files and the vector index.",
    )
    database_url: str = Field(
        default="",
        description="SQLAlchemy URL, sqlite:///… or postgresql+psycopg://…; empty means SQLite inside the data dir.",
    )
    shared: bool = Field(
        default=False,
        description="Whether other processes serve the same database at the same time; needs PostgreSQL and what all "
        "processes reach.",
    )
    secret: SecretStr | None = Field(
        default=None,
        description="At least 32 random characters, the same for all processes that share a database: it seals the "
        "passwords of files on their way to the process that reads them, and the key that signs receipts.",
    )
    role: Literal["all", "api", "worker"] = Field(
        default="all",
        description="What a process that shares its database does: api answers requests, worker ingests documents "
        "(as footnote worker), all does both.",
    )
    originals: str = Field(
        default="",
        pattern=r"^(|/.+|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)$",
        description="Where original files are: empty is the data dir; else the whole path of a folder, which may be a "
        "mount, or s3://BUCKET/PREFIX, which needs the extra `s3` and AWS's variables with the keys.",
    )
    originals_endpoint: str = Field(
        default="",
        pattern=r"^(|https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._-]+)*/?)$",
        description="Base URL of the server that has the bucket, such as https://minio.example:9000; "
        "empty is AWS_ENDPOINT_URL, or AWS itself.",
    )
    originals_region: str = Field(
        default="", pattern=r"^[a-z0-9-]*$", description="Region of the bucket; empty is AWS_REGION, or us-east-1."
    )
    originals_cache_mb: int = Field(
        default=1024,
        ge=0,
        le=10_000_000,
        description="Most disk space of copies of a bucket's originals, in MiB, that are kept to be read again.",
    )
    host: str = Field(default="127.0.0.1", description="Address `footnote serve` listens on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port `footnote serve` listens on; 0 picks a free one.")
    forwarded_allow_ips: str = Field(
        default="127.0.0.1",
        description="Addresses or networks of reverse proxies, comma-separated, whose X-Forwarded-For and "
        "X-Forwarded-Proto are trusted; * trusts every address.",
    )
    root_path: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="Path prefix below which a reverse proxy shows Footnote, such as /footnote; it may strip it.",
    )
    keep_alive_s: int = Field(
        default=75,
        ge=1,
        le=3600,
        description="Seconds an idle connection is kept open; should exceed the timeout of your proxy.",
    )
    header_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds in which a connection must send a whole request header; then it is closed.",
    )
    tls_cert: Path | None = Field(
        default=None, description="PEM file of the certificate and its chain, to serve HTTPS without a proxy."
    )
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's private key, not encrypted.")
    drain_s: int = Field(
        default=30,
        ge=0,
        le=3600,
        description="Seconds that running requests have to finish after SIGTERM; then their streams end with an error.",
    )
    reporting_zone: str = Field(
        default="UTC",
        description="IANA time zone of days and months in usage reports and budgets, unless a request names one.",
    )
    currency: str = Field(
        default="usd", pattern=r"^[a-z]{3}$", description="Currency of all prices and costs, ISO 4217 in lower case."
    )
    webhook_hosts: str = Field(
        default="",
        description="Hosts, or host:port, comma-separated, that may receive budget alerts, weekly summaries and events "
        "of watches, and be tested as servers of models, although their addresses are not public.",
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Secret of at least 16 characters that signs what is posted to webhooks (X-Footnote-Signature); "
        "unset: nothing is signed.",
    )
    watch_webhook: str = Field(
        default="",
        max_length=2048,
        description="URL that the events of watched questions, of all tenants, are posted to as JSON; empty: none are.",
    )
    summary_webhook: str = Field(
        default="",
        max_length=2048,
        description="URL that the first tenant's overview of each week, beside the week before, is posted to as JSON; "
        "empty: none is sent.",
    )
    summary_mail: str = Field(
        default="",
        max_length=5500,
        description="Mail addresses, comma-separated, that the same overview is mailed to as text; needs "
        "FOOTNOTE_SMTP_URL. Empty: none is mailed.",
    )
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
        description="Share of requests that are traced, in [0, 1]; the decision in a caller's traceparent wins.",
    )

    @field_validator("reporting_zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        if name not in available_timezones():
            raise ValueError("is not a time zone of the IANA database, such as Europe/Berlin")
        return name

    @field_validator("secret")
    @classmethod
    def _hard_to_guess(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < 32:
            raise ValueError("must have at least 32 characters")
        return secret

    @field_validator("webhook_secret")
    @classmethod
    def _signs_safely(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < 16:
            raise ValueError("must have at least 16 characters")
        return secret

    @model_validator(mode="after")
    def _roles_are_shared(self) -> Self:
        if self.role != "all" and not self.shared:
            raise ValueError(f"FOOTNOTE_ROLE={self.role} needs FOOTNOTE_SHARED=true: a process alone does everything")
        return self

    @model_validator(mode="after")
    def _certificate_has_key(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("FOOTNOTE_TLS_CERT and FOOTNOTE_TLS_KEY go together")
        return self

    @model_validator(mode="after")
    def _place_of_originals(self) -> Self:
        if self.bucket is None and (self.originals_endpoint or self.originals_region):
            raise ValueError("FOOTNOTE_ORIGINALS_ENDPOINT and FOOTNOTE_ORIGINALS_REGION need FOOTNOTE_ORIGINALS=s3://…")
        return self

    @property
    def bucket(self) -> tuple[str, str] | None:
        """The bucket of the originals and the prefix in it, which may be empty; None where they are in a folder."""
        if not self.originals.startswith("s3://"):
            return None
        name, _, prefix = self.originals.removeprefix("s3://").partition("/")
        return name, prefix

    def address(self, *, port: int | None = None) -> str:
        """The URL at which a browser on this machine opens the server, without a slash at its end.

        Args:
            port: The port that was bound, where it is not the configured one.
        """
        host = _ON_THIS_MACHINE.get(self.host, f"[{self.host}]" if ":" in self.host else self.host)
        scheme = "http" if self.tls_cert is None else "https"
        return f"{scheme}://{host}:{self.port if port is None else port}"

    @property
    def signing_secret(self) -> str:
        """The secret that signs what is posted to webhooks; "" signs nothing."""
        return "" if self.webhook_secret is None else self.webhook_secret.get_secret_value()

    @property
    def answers_questions(self) -> bool:
        """Whether this process answers questions."""
        return self.role != "worker"

    @property
    def ingests(self) -> bool:
        """Whether this process ingests documents."""
        return self.role != "api"

    @property
    def resolved_database_url(self) -> str:
        """`database_url`, or SQLite inside the data dir."""
        return self.database_url or f"sqlite:///{(self.data_dir / 'footnote.db').absolute()}"


def notify_socket() -> str:
    """Address of the service manager's socket, empty where no manager started this process (systemd, sd_notify(3))."""
    return os.environ.get("NOTIFY_SOCKET", "")
