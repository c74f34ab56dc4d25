"""Limits for callers: rate limits, timeouts, watched questions and tables."""

from pydantic import BaseModel, Field


class LimitSettings(BaseModel, frozen=True):
    """Rate limits, timeouts, watches, tables. Administrators may set other rate limits for single keys and tenants."""

    requests_per_minute: int | None = Field(
        default=None, ge=1, description="Requests a key may make in any minute; unset is no limit."
    )
    tokens_per_minute: int | None = Field(
        default=None, ge=1, description="Tokens, input and output, a key may use in any minute; unset is no limit."
    )
    concurrent_requests: int | None = Field(
        default=None, ge=1, description="Concurrent requests of a key; unset is no limit."
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
    public_requests_per_minute: int = Field(
        default=6000,
        ge=1,
        le=1_000_000,
        description="Requests without a key (the page's files, health, metrics, signing in) that a client address may "
        "send in any minute; then it is refused (429).",
    )
    answer_deadline_s: float = Field(
        default=600.0,
        gt=0,
        le=86_400,
        description="Longest time for an answer, in seconds from the request's arrival; then it ends with 504.",
    )
    watches_per_key: int = Field(
        default=20, ge=0, le=10_000, description="Watched questions that a key may have; 0 refuses new ones."
    )
    watch_interval_s: int = Field(
        default=300, ge=1, le=86_400, description="Least seconds between two looks at a watched question."
    )
    watch_events: int = Field(
        default=100, ge=1, le=10_000, description="Newest events that are kept of each watched question."
    )
    tables_per_key: int = Field(
        default=20,
        ge=0,
        le=10_000,
        description="Tables of questions × documents that a key may have; 0 refuses new ones.",
    )
    table_documents: int = Field(default=1000, ge=1, le=10_000, description="Most documents of a table.")
    write_timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="Seconds a client may leave a response unread; then the connection is closed.",
    )
