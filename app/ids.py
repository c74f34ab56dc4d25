"""Ids people see: a short prefix and 128 random-enough bits, sortable by time (RFC 9562, UUID version 7)."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u


def new_id(prefix: str) -> str:
    """`prefix_` and 26 characters: 48 bits of Unix milliseconds, then 80 random bits, in base 32."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    digits = [_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"
