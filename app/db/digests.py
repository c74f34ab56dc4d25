"""The form in which secrets are stored: SHA-256 in hexadecimal. They carry 256 random bits, so no salt is needed."""

import hashlib


def digest_of(secret: str) -> str:
    """64 hexadecimal digits."""
    # a header may hold anything; what is not Unicode is still nobody's secret
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
