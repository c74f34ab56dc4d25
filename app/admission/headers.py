"""Where a caller stands, as response headers.

`RateLimit-Policy` and `RateLimit` are structured fields (RFC 9651) as in draft-ietf-httpapi-ratelimit-headers-10: what
the limits are, and what is left of each; `t` is when the oldest of what was taken leaves the window. Beside them
stand the names that clients of OpenAI's API read, for the limit with the least left.
"""

from collections.abc import Sequence

from app.admission.types import Standing


def rate_limit_headers(standings: Sequence[Standing]) -> dict[str, str]:
    """Headers for the limits that apply; none where none does."""
    if not standings:
        return {}
    headers = {
        "RateLimit-Policy": ", ".join(map(_policy, standings)),
        "RateLimit": ", ".join(map(_left, standings)),
    }
    for unit in ("requests", "tokens"):
        applying = [standing for standing in standings if standing.unit == unit and standing.window_s is not None]
        if applying:
            tightest = min(applying, key=lambda standing: standing.remaining)
            headers[f"x-ratelimit-limit-{unit}"] = str(tightest.limit)
            headers[f"x-ratelimit-remaining-{unit}"] = str(tightest.remaining)
            headers[f"x-ratelimit-reset-{unit}"] = f"{tightest.reset_s}s"
    return headers


def _policy(standing: Standing) -> str:
    unit = "" if standing.unit == "requests" else f';qu="{standing.unit}"'
    window = "" if standing.window_s is None else f";w={standing.window_s}"
    return f'"{standing.name}";q={standing.limit}{unit}{window}'


def _left(standing: Standing) -> str:
    reset = "" if standing.window_s is None else f";t={standing.reset_s}"
    return f'"{standing.name}";r={standing.remaining}{reset}'
