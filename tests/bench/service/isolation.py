"""`python -m tests.bench.service.isolation`: does anybody's answer hold what is somebody else's?

The real application with five tenants whose documents say the same things, and random requests over every route, with
other tenants' ids, words, cursors and idempotency keys and with filters that try to be conditions on tenants. Each body
and header is searched for every id and canary its caller may not see, in base64 too.
"""

import argparse
import base64
import binascii
import json
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from httpx2 import Response

from tests.bench.service.tenancies import CANARY, ID, Caller, Owner, Tenancies, tenancies
from tests.bench.service.trespass import SEES, Attempt, Trespasser

_BASE64 = re.compile(r"[A-Za-z0-9_+/-]{16,}={0,2}")
_NOBODY = Owner("nobody")
_TOLD = 500  # requests, before it is said how far it is


@dataclass(frozen=True, slots=True)
class Leak:
    """What a caller was told that is not its own."""

    attempt: Attempt
    marks: tuple[str, ...]


@dataclass(slots=True)
class Findings:
    """By route: how many requests, how they ended, how many answers held something of the caller's own, and leaks."""

    statuses: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    own: Counter[str] = field(default_factory=Counter)
    leaks: list[Leak] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """As JSON."""
        every = sum(self.statuses.values(), Counter[int]())
        return {
            "requests": every.total(),
            "foreign": len(self.leaks),
            "answers_with_own": self.own.total(),
            "statuses": dict(sorted(every.items())),
            "routes": {
                route: {"statuses": dict(sorted(counts.items())), "own": self.own[route]}
                for route, counts in sorted(self.statuses.items())
            },
            "leaks": [(leak.attempt.caller.name, leak.attempt.template, leak.marks) for leak in self.leaks[:20]],
            "failures": self.failures[:20],
        }


def trespass(made: Tenancies, draw: random.Random, requests: int, findings: Findings | None = None) -> Findings:
    """Make so many requests, and look through what comes back."""
    findings = findings or Findings()
    contract = made.client.get("/openapi.json").json()
    trespasser = Trespasser(made, contract, draw)
    for _ in range(requests):
        attempt = trespasser.attempt()
        response = made.client.request(
            attempt.method, attempt.path, params=attempt.params, content=attempt.body, headers=attempt.headers
        )
        made.client.cookies.clear()
        route = f"{attempt.method} {attempt.template}"
        findings.statuses[route][response.status_code] += 1
        if response.status_code >= 500:
            findings.failures.append((route, response.text[:300]))
        if attempt.method != "GET" and attempt.template not in SEES and response.is_success:
            # a user may be named like somebody's request: its tenant then reads what it wrote itself
            made.written[attempt.caller.tenant] |= attempt.sent
        sent = attempt.sent | made.written[attempt.caller.tenant]
        foreign, own = seen(made, attempt.caller, response, sent=sent)
        if foreign:
            findings.leaks.append(Leak(attempt, tuple(sorted(foreign))))
        findings.own[route] += any(not mark.startswith("req_") for mark in own)
    return findings


def seen(made: Tenancies, caller: Caller, response: Response, *, sent: set[str]) -> tuple[set[str], set[str]]:
    """Ids and canaries in a response that are not the caller's, but for those it sent itself; and those that are.

    An id that nobody has seen becomes the first one's who does.
    """
    text = " ".join([response.text, *(f"{name}: {value}" for name, value in response.headers.items())])
    text = " ".join([text, *_decoded(text)])
    found = {*ID.findall(text), *CANARY.findall(text)}
    if not found:
        return set(), set()
    made.claim(" ".join(found - sent), Owner(caller.tenant, caller.part))
    foreign = {mark for mark in found - sent if not caller.may_see(made.owners.get(mark, _NOBODY))}
    return foreign, found - foreign - sent


def standing(made: Tenancies) -> dict[str, Any]:
    """What every tenant but the vandal has: documents, collections, keys and budgets, without counts of their use."""
    found: dict[str, Any] = {}
    for tenant in made.tenants[:-1]:
        headers = made.admin(tenant).headers
        for path in ("/v1/documents", "/v1/collections", "/v1/admin/keys", "/v1/admin/budgets"):
            data = made.client.get(f"{path}?limit=500", headers=headers).json()["data"]
            found[f"{tenant} {path}"] = {one["id"]: {name: one.get(name) for name in _LASTING} for one in data}
    return found


_LASTING = ("metadata", "name", "status", "version", "sha256", "role", "collections", "revoked_at", "limit", "filename")


def _decoded(text: str) -> list[str]:
    """What is written in base64 (RFC 4648), either alphabet: a cursor says more than it seems to."""
    found = []
    for run in _BASE64.findall(text):
        try:
            padded = run.rstrip("=").translate(str.maketrans("-_", "+/"))
            found.append(base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True).decode())
        except (binascii.Error, ValueError):
            continue
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.isolation", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL, with tantivy beside it")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with ExitStack() as stack:
        url = ""
        if chosen.postgres:
            from tests.postgres import empty_postgres

            url = stack.enter_context(empty_postgres())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        made = stack.enter_context(tenancies(folder / "data", database_url=url))
        before, began = standing(made), time.perf_counter()
        draw, findings = random.Random(chosen.seed), Findings()
        for done in range(0, chosen.requests, _TOLD):
            trespass(made, draw, min(_TOLD, chosen.requests - done), findings)
            so_far = f"{done + _TOLD} requests, {len(findings.leaks)} leaks, {len(made.owners)} marks"
            print(f"{so_far}, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        after = standing(made)
        changed = [
            (where, id_)
            for where, things in before.items()
            for id_, it in things.items()
            if after[where].get(id_) != it
        ]
        told = {"marks": len(made.owners), "changed": changed, "seconds": round(time.perf_counter() - began)}
        print(json.dumps({**told, **findings.told()}, indent=1))


if __name__ == "__main__":
    main()
