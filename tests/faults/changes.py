"""The changes that a client makes one after the other, so that the server makes each kind of transaction at least once.

Each change has signs in the database: queries that all count 0 before it and 1 after it. A sign that differs from the
others shows half a change, and a 2 shows a change that happened twice.
"""

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import httpx

from tests.faults.forked import ForkedServer

_TEXT = "{0} log: the keeper counted forty ships on day one and wrote {0} down.\n\nHow many ships? Forty ships, {0}."
_FILE = "SELECT id FROM unattached_file UNION SELECT document_id FROM document_version WHERE filename = 'loose.txt'"

IDS = {
    "key": "SELECT id FROM api_key WHERE name IN ('laptop', 'notebook')",
    "budget": "SELECT budget_id FROM budget WHERE scope_type = 'user'",
    "collection": "SELECT id FROM collection WHERE name = 'logs'",
    "document": "SELECT id FROM document WHERE external_id = 'harbour'",
    "conversation": "SELECT id FROM conversation WHERE title = 'Ships'",
    "answer": "SELECT request_id FROM conversation_turn WHERE ordinal = 1",
    "file": _FILE,
    "store": "SELECT id FROM collection WHERE name = 'store'",
    "batch": "SELECT id FROM file_batch",
    "invitation": "SELECT id FROM invitation",
}
"""Queries for the ids that `<name>` stands for in a path or a body."""


@dataclass(frozen=True, slots=True)
class Change:
    """One request, and its signs.

    `file` is the text of an upload. `again` are the statuses, besides those of success, that a retry may get because
    the change has happened.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    file: str | None = None
    signs: tuple[str, ...] = ()
    again: frozenset[int] = frozenset({409})

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def ready(self, server: ForkedServer) -> "Change":
        """The same with the ids that it names, which a retry sends too when they are gone."""
        body = None if self.body is None else json.loads(filled(server, json.dumps(self.body)))
        return replace(self, path=filled(server, self.path), body=body)

    def send(self, server: ForkedServer, key: str) -> httpx.Response:
        """Send it, a POST with `key` as its Idempotency-Key."""
        headers = {"Idempotency-Key": key} if self.method == "POST" else {}
        server.http.cookies.clear()  # a session's; everything is sent with the key
        if self.file is None:
            return server.http.request(self.method, self.path, json=self.body, headers=headers)
        upload = {"file": (f"{self.file}.txt", _TEXT.format(self.file).encode())}
        return server.http.request(self.method, self.path, files=upload, data=self.body, headers=headers)

    def found(self, server: ForkedServer) -> list[int]:
        """What its signs count."""
        return [rows(server, query)[0][0] for query in self.signs]

    def count(self, server: ForkedServer) -> int:
        """How often it has happened.

        Raises:
            AssertionError: Its signs differ: a part of it has happened.
        """
        found = self.found(server)
        assert len(set(found)) <= 1, f"half of {self}: {found} are {self.signs}"
        return next(iter(found), 0)


def rows(server: ForkedServer, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query on the server's database."""
    with closing(sqlite3.connect(f"file:{server.data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def filled(server: ForkedServer, text: str) -> str:
    """`text` with an id for each `<name>` of `IDS`."""

    def identify(found: re.Match[str]) -> str:
        ((value,),) = rows(server, IDS[found[1]])
        return str(value)

    return re.sub(r"<(\w+)>", identify, text)


def _count(table: str, condition: str) -> str:
    return f"SELECT count(*) FROM {table} WHERE {condition}"


def _none(table: str, condition: str) -> str:
    return f"SELECT NOT EXISTS (SELECT 1 FROM {table} WHERE {condition})"


def _audited(action: str, condition: str = "1") -> str:
    return _count("audit_event", f"action = '{action}' AND {condition}")


_TERMS = {"unit": "cost", "limit": "1000", "period": "day"}
_ASK = {"question": "How many ships did the keeper count?", "on_no_evidence": "answer", "max_output_tokens": 40}
_HARBOUR = "document_id = (SELECT id FROM document WHERE external_id = 'harbour')"
_GONE = frozenset({404})

CHANGES: tuple[Change, ...] = (
    # tenants, users, keys, limits
    Change(
        "POST",
        "/v1/admin/tenants",
        {"id": "acme", "name": "Acme"},
        signs=(_count("tenant", "id = 'acme'"), _audited("tenant.created")),
    ),
    Change(
        "POST",
        "/v1/admin/tenants/acme/keys",
        {"name": "first"},
        signs=(_count("api_key", "tenant_id = 'acme'"), _audited("tenant.key_created")),
    ),
    Change(
        "POST",
        "/v1/admin/users",
        {"id": "ann", "name": "Ann"},
        signs=(_count("app_user", "id = 'ann'"), _audited("user.created")),
    ),
    Change(
        "PATCH",
        "/v1/admin/users/ann",
        {"name": "Anna"},
        signs=(_count("app_user", "name = 'Anna'"), _audited("user.changed")),
    ),
    Change(
        "POST",
        "/v1/admin/keys",
        {"name": "laptop", "role": "member", "user_id": "ann", "budget": _TERMS},
        signs=(
            _count("api_key", "name IN ('laptop', 'notebook')"),
            _count("budget", "scope_type = 'key'"),
            _audited("key.created"),
        ),
    ),
    Change(
        "PATCH",
        "/v1/admin/keys/<key>",
        {"name": "notebook"},
        signs=(_count("api_key", "name = 'notebook'"), _audited("key.changed")),
    ),
    Change(
        "POST",
        "/v1/admin/keys/<key>/rotate",
        {"overlap_s": 60},
        signs=(_count("api_key", "rotated_at IS NOT NULL"), _audited("key.rotated")),
    ),
    Change(
        "POST",
        "/v1/admin/invitations",
        {"name": "Grace"},
        signs=(_count("invitation", "name = 'Grace'"), _audited("invitation.created")),
    ),
    Change(
        "DELETE",
        "/v1/admin/invitations/<invitation>",
        signs=(_count("invitation", "revoked_at IS NOT NULL"), _audited("invitation.revoked")),
    ),
    Change(
        "PUT",
        "/v1/admin/limits/keys/<key>",
        {"requests_per_minute": 60},
        signs=(_count("quota_override", "requests_per_minute = 60"),),
    ),
    Change("POST", "/v1/session"),  # a retry opens another one, for who signs in has no key yet
    # prices and budgets
    Change(
        "POST",
        "/v1/admin/prices",
        {"model": "other", "meter": "input", "price_per_million": "0.5"},
        signs=(_count("price", "model_id = 'other'"), _audited("price.added", "detail LIKE '%other%'")),
    ),
    Change(
        "POST",
        "/v1/admin/budgets",
        {"scope_type": "user", "scope_id": "ann", **_TERMS},
        signs=(
            _count("budget", "scope_type = 'user'"),
            _audited("budget.create", "target = (SELECT budget_id FROM budget WHERE scope_type = 'user')"),
        ),
    ),
    Change(
        "POST",
        "/v1/admin/budgets/<budget>/reset",
        signs=("SELECT series - 1 FROM budget WHERE scope_type = 'user'", _audited("budget.reset")),
    ),
    Change(
        "PATCH",
        "/v1/admin/budgets/<budget>",
        {"limit": "2000"},
        signs=(_count("budget", "limit_value = 2000000000000000"),),
    ),
    # documents
    Change("POST", "/v1/collections", {"name": "logs"}, signs=(_count("collection", "name = 'logs'"),)),
    Change(
        "POST",
        "/v1/documents",
        {"external_id": "harbour", "collection_id": "<collection>"},
        file="harbour",
        signs=(
            _count("document", "external_id = 'harbour'"),
            _count("document_version", f"{_HARBOUR} AND version = 1"),
        ),
    ),
    Change(
        "PUT",
        "/v1/documents/<document>",
        file="harbour-two",
        signs=(_count("document_version", f"{_HARBOUR} AND version = 2"),),
    ),
    Change(
        "PATCH",
        "/v1/documents/<document>",
        {"metadata": {"year": 2026}},
        signs=(_count("document", "metadata LIKE '%2026%'"),),
    ),
    Change("POST", "/v1/collections/<collection>/reindex"),
    # questions and what is kept of them
    Change("POST", "/v1/search", {"query": "How many ships?", "mode": "dense"}),
    Change("POST", "/v1/embeddings", {"input": "forty ships", "model": "hashing"}),
    Change(
        "POST",
        "/v1/conversations",
        {"title": "Ships"},
        signs=(_count("conversation", "title = 'Ships'"),),
    ),
    Change(
        "POST",
        "/v1/ask",
        {**_ASK, "conversation_id": "<conversation>"},
        signs=(_count("conversation_turn", "1"),),
    ),
    Change("POST", "/v1/ask", {**_ASK, "stream": True}),
    Change(
        "POST",
        "/v1/requests/<answer>/feedback",
        {"score": 1, "comment": "good"},
        signs=(_count("feedback", "score = 1"),),
    ),
    # OpenAI's files
    Change(
        "POST",
        "/v1/files",
        {"purpose": "assistants"},
        file="loose",
        signs=(f"SELECT count(*) FROM ({_FILE})",),
    ),
    Change("POST", "/v1/vector_stores", {"name": "store"}, signs=(_count("collection", "name = 'store'"),)),
    Change(
        "POST",
        "/v1/vector_stores/<store>/file_batches",
        {"file_ids": ["<file>"]},
        signs=(_count("file_batch", "1"),),
    ),
    Change("POST", "/v1/vector_stores/<store>/file_batches/<batch>/cancel"),
    # repairs
    Change("POST", "/v1/admin/reconcile", {"repair": True}),
    Change("POST", "/v1/admin/usage/rebuild", {"start_time": 1_700_000_000, "end_time": 1_700_086_400}),
    Change(
        "POST",
        "/v1/admin/prices/rerate",
        {"start_time": 0, "end_time": 4_000_000_000, "reason": "a check", "dry_run": False},
    ),
    # the end of everything
    Change("DELETE", "/v1/requests/<answer>/feedback", signs=(_none("feedback", "1"),), again=_GONE),
    Change(
        "DELETE",
        "/v1/conversations/<conversation>",
        signs=(_none("conversation", "1"), _none("conversation_turn", "1")),
        again=_GONE,
    ),
    Change(
        "DELETE",
        "/v1/documents/<document>",
        signs=(
            _none("document", "external_id = 'harbour'"),
            _none("chunk", "text LIKE 'harbour%'"),
        ),
        again=_GONE,
    ),
    Change("DELETE", "/v1/collections/<store>?force=true", signs=(_none("collection", "name = 'store'"),), again=_GONE),
    Change("DELETE", "/v1/admin/limits/keys/<key>", signs=(_none("quota_override", "1"),), again=_GONE),
    Change(
        "DELETE",
        "/v1/admin/budgets/<budget>",
        signs=(_count("budget", "scope_type = 'user' AND deleted_at IS NOT NULL"), _audited("budget.delete")),
        again=_GONE,
    ),
    Change(
        "DELETE",
        "/v1/admin/keys/<key>",
        signs=(_count("api_key", "revoked_at IS NOT NULL"), _audited("key.revoked")),
        again=_GONE,
    ),
    Change(
        "DELETE",
        "/v1/admin/users/ann",
        signs=(_none("app_user", "id = 'ann' AND disabled_at IS NULL"),),
        again=_GONE | {409},
    ),
)
