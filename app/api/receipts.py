"""Routes of receipts: the signed receipt of an answer, the public keys that verify it, and a new key."""

from importlib.metadata import version as distribution_version

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from app.api.dependencies import AccessDep, CorpusDep, HistoryDep, PrincipalDep, RequestId, UsageDep
from app.api.schemas.bounds import Id
from app.api.schemas.shape import ResponseBody, problems, rfc3339
from app.receipts.receipt import ReceiptMaker
from app.receipts.signing import PublicKey, canonical, jwk_of, signed

router = APIRouter(tags=["receipts"])


class VerificationKeyBody(ResponseBody):
    """A public key as a JWK (RFC 7517, RFC 8037), and when it signed."""

    kty: str = Field(description="Always `OKP`.", examples=["OKP"])
    crv: str = Field(description="Always `Ed25519`.", examples=["Ed25519"])
    x: str = Field(description="The key, base64url.", examples=["11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"])
    kid: str = Field(description="Its thumbprint (RFC 7638).", examples=["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"])
    use: str = Field(description="Always `sig`.", examples=["sig"])
    alg: str = Field(description="Always `EdDSA`.", examples=["EdDSA"])
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    retired_at: str | None = Field(description="When another key replaced it; null for the one that signs.")

    @classmethod
    def of(cls, key: PublicKey) -> "VerificationKeyBody":
        """The body for a key."""
        retired_at = None if key.retired_at is None else rfc3339(key.retired_at)
        return cls(**jwk_of(key.raw), created_at=rfc3339(key.created_at), retired_at=retired_at)


class VerificationKeysBody(ResponseBody):
    """A JWK set (RFC 7517, section 5)."""

    keys: list[VerificationKeyBody] = Field(description="All keys that ever signed a receipt, the newest first.")


@router.get(
    "/v1/answers/{id}/receipt",
    summary="Get a signed receipt of an answer",
    response_class=Response,
    responses={
        200: {
            "description": "The receipt: question, answer, footnotes, hashes of documents, models, ledger rows, key "
            "and signature. docs/RECEIPTS.md describes each member.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        **problems(404, 422, 503),
    },
)
def read_receipt(
    id: Id,  # noqa: A002 - the contract's name
    history: HistoryDep,
    corpus: CorpusDep,
    usage: UsageDep,
    access: AccessDep,
    principal: PrincipalDep,
) -> Response:
    """A receipt of a kept answer that the caller may read: of a conversation, or a stored response.

    It is made and signed at this moment, of what the caller may read now; `footnote verify` checks it without a server.
    """
    maker = ReceiptMaker(
        conversations=history.conversations,
        contents=corpus.contents,
        ledger=usage.raw_ledger,
        version=distribution_version("footnote-rag"),
    )
    history.conversations.turn(id, principal=principal)  # an answer that is not there makes no key
    private, now = access.signing_keys.current()
    receipt = signed(maker.fields(id, principal=principal, now=now), private)
    disposition = 'attachment; filename="receipt.json"'
    return Response(canonical(receipt), media_type="application/json", headers={"Content-Disposition": disposition})


@router.get("/.well-known/footnote-keys.json", summary="List the keys that verify receipts", responses=problems(503))
def verification_keys(access: AccessDep) -> VerificationKeysBody:
    """All public keys that ever signed a receipt, as a JWK set; none before the first receipt."""
    return VerificationKeysBody(keys=[VerificationKeyBody.of(key) for key in access.signing_keys.public()])


@router.post("/v1/admin/signing-keys/rotate", summary="Rotate the signing key", responses=problems(403, 503))
def rotate_signing_key(access: AccessDep, principal: PrincipalDep, request_id: RequestId) -> VerificationKeyBody:
    """Sign receipts with a new key from now on. The private key before it is deleted; its public key stays listed."""
    record = access.audit.recording(principal, "signing_key.rotated", request_id=request_id)
    return VerificationKeyBody.of(access.signing_keys.rotate(record))
