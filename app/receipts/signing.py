"""Signatures of receipts: Ed25519 (RFC 8032) over canonical JSON (RFC 8785), with keys as JWKs (RFC 7517, RFC 8037).

A receipt names its key inside what is signed, so a signature cannot be given to another key. Nothing here knows what a
receipt says.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE = "signature"
"""The member of a receipt that is not signed: the signature over all others."""

KEY = "key"
"""The member with the public key, as a JWK."""

_KEY_BYTES = 32
_SIGNATURE_BYTES = 64


class NotSigned(ValueError):
    """A receipt's signature does not hold; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key with the time of its use: Unix seconds, `retired_at` None while it signs.

    `raw` is the key's 32 bytes.
    """

    raw: bytes
    created_at: float
    retired_at: float | None = None

    @property
    def key_id(self) -> str:
        """The thumbprint of the key (RFC 7638), which nobody can choose for another key."""
        return thumbprint(self.raw)


def canonical(fields: Mapping[str, Any]) -> bytes:
    """The canonical JSON of an object (RFC 8785).

    Raises:
        NotSigned: It has none: a number is no double, or a text no Unicode.
    """
    import rfc8785

    try:
        return rfc8785.dumps(dict(fields))
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError):
        raise NotSigned("The receipt has no canonical form: a number or a text in it is none of JSON's.") from None


def thumbprint(raw: bytes) -> str:
    """The id of a public key: the SHA-256 of its required members, as base64url (RFC 7638, RFC 8037 section 2)."""
    return _base64url(hashlib.sha256(canonical({"crv": "Ed25519", "kty": "OKP", "x": _base64url(raw)})).digest())


def jwk_of(raw: bytes) -> dict[str, str]:
    """A public key as a JWK (RFC 8037, section 2)."""
    return {"kty": "OKP", "crv": "Ed25519", "x": _base64url(raw), "kid": thumbprint(raw), "use": "sig", "alg": "EdDSA"}


def key_in(jwk: object) -> bytes:
    """The 32 bytes of the public key in a JWK.

    Raises:
        NotSigned: It is no Ed25519 key, or its id is not its thumbprint.
    """
    if not isinstance(jwk, dict) or (jwk.get("kty"), jwk.get("crv")) != ("OKP", "Ed25519"):
        raise NotSigned("There is no Ed25519 key in it.")
    raw = _decoded(jwk.get("x"), _KEY_BYTES)
    if raw is None:
        raise NotSigned("The public key is not 32 bytes in base64url.")
    if jwk.get("kid") != thumbprint(raw):
        raise NotSigned("The id of the public key is not the key's own thumbprint.")
    return raw


def signed(fields: Mapping[str, Any], private: "Ed25519PrivateKey") -> dict[str, Any]:
    """The object with its key and signature.

    Example:
        >>> receipt = signed({"format": "footnote-receipt/1"}, Ed25519PrivateKey.generate())
        >>> len(signer_of(receipt))
        32
    """
    assert not {KEY, SIGNATURE} & fields.keys(), "they are set here"
    whole = {**fields, KEY: jwk_of(private.public_key().public_bytes_raw())}
    return {**whole, SIGNATURE: _base64url(private.sign(canonical(whole)))}


def signer_of(receipt: Mapping[str, Any]) -> bytes:
    """The public key in a receipt whose signature by that key holds: its 32 bytes.

    Raises:
        NotSigned: It does not hold.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = key_in(receipt.get(KEY))
    signature = _decoded(receipt.get(SIGNATURE), _SIGNATURE_BYTES)
    if signature is None:
        raise NotSigned("There is no signature of 64 bytes in base64url in it.")
    said = canonical({name: value for name, value in receipt.items() if name != SIGNATURE})
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, said)
    except (InvalidSignature, ValueError):
        raise NotSigned("The receipt was changed after it was signed, or signed with another key.") from None
    return raw


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: object, size: int) -> bytes | None:
    """The bytes of base64url without padding in its one spelling (RFC 7515, section 2); None for anything else."""
    if not isinstance(text, str) or len(text) > 2 * size or not text.isascii():
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == size and _base64url(raw) == text else None
