"""Examines a running server through its readiness, version and metrics endpoints."""

import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from app.doctor.report import Facts, Finding, Level, Report, tame

_SECONDS = 5.0
_SKEW_SECONDS = 5.0
_SLOW_HINT = 'docs/OPERATIONS.md, "Size the engine", says what a GPU needs.'
_LEFT_OUT = ("_bucket", "_created", "_sum", "_count")


def look_at_server(report: Report, http: httpx.Client, *, expected: bool) -> None:
    """Examines the server at the client's address; one that does not answer there is told with the address.

    Args:
        report: Receives the findings.
        http: A client of that server.
        expected: Whether a server must be running there; if not, silence is a fact and no finding.
    """
    address = tame(str(http.base_url))
    try:
        health = http.get("/healthz", timeout=_SECONDS)
        ready = http.get("/readyz", timeout=_SECONDS).json()
        metrics = http.get("/metrics", timeout=_SECONDS)
        version = health.json()["version"]
    except (httpx.HTTPError, ValueError, KeyError) as error:
        findings = [] if not expected else [_silent(type(error).__name__)]
        report.add("server", {"address": address, "answers": False}, *findings)
        return
    facts: Facts = {
        "address": address,
        "answers": True,
        "version": version,
        "ready": ready,
        "metrics": _gauges(metrics.text),
    }
    findings = []
    if not ready.get("ready"):
        findings.append(
            Finding(
                Level.ERROR,
                "not-ready",
                f"The server is not ready: {'; '.join(map(str, ready.get('reasons', [])))}.",
                "Its log says more; while models load, wait.",
            )
        )
    findings += [
        Finding(Level.WARNING, "slow-path", f"The engine is slower than it could be: {tame(why)}", _SLOW_HINT)
        for why in _slower(ready)
    ]
    skew = _skew(health.headers.get("Date"))
    if skew is not None:
        facts["clock_skew_s"] = round(skew, 1)
        if abs(skew) > _SKEW_SECONDS:
            findings.append(
                Finding(
                    Level.WARNING,
                    "clock-skew",
                    f"The server's clock and this machine's differ by {abs(skew):.0f} seconds.",
                    "Keep both by NTP: keys expire and budgets begin by the server's clock.",
                )
            )
    report.add("server", facts, *findings)


def _silent(error: str) -> Finding:
    return Finding(
        Level.ERROR,
        "no-answer",
        f"No Footnote server answers at --url ({error}).",
        "See that it runs and is reachable.",
    )


def _slower(ready: dict[str, Any]) -> list[str]:
    """Why a faster path of the server's machine does not serve, as its readiness says; a remote server has none."""
    path = ready.get("checks", {}).get("engine", {}).get("path", {})
    return [str(why) for why in path.get("slower", [])]


def _gauges(text: str) -> Facts:
    """The values of the metrics page, without histograms."""
    facts: Facts = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if line.startswith("#") or not name or name.partition("{")[0].endswith(_LEFT_OUT):
            continue
        facts[name] = float(value)
    return facts


def _skew(date: str | None) -> float | None:
    """The server's clock skew in seconds; headers have whole seconds."""
    try:
        return parsedate_to_datetime(date).timestamp() - time.time() if date else None
    except ValueError:
        return None
