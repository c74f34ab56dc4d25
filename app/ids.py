"""Identifiers shown to callers: a short prefix, and a time-ordered value as in UUID version 7 (RFC 9562)."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u


def new_id(prefix: str) -> str:
    """A new identifier: `prefix_` and 26 characters of base 32, for 48 bits of Unix milliseconds and 80 random bits.

    Example:
        >>> new_id("doc")
        "doc_01jd2x8k3vq5zt7m9n4r6s8w0y"
    """
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    digits = [_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"
