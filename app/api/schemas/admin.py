"""Bodies of administration."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.cutover import Building
from app.db.generations import Generation, GenerationStatus
from app.types import ApiKey, Role


class NewKey(RequestBody):
    """A key to make."""

    name: str = Field(min_length=1, max_length=200, description="For your own orientation.", examples=["ci"])
    role: Role = Field(
        default=Role.MEMBER, description="admin, member (documents and questions) or reader (questions)."
    )
    user_id: str | None = Field(
        default=None, min_length=1, max_length=200, description="Whom its use is booked on; default: the name."
    )
    collections: list[str] | None = Field(
        default=None, max_length=1000, description="Collection ids the key is limited to; null is all."
    )
    expires_in: float | None = Field(default=None, gt=0, description="Seconds until it stops working; null is never.")
    budget: None = Field(default=None, description="Only null is taken; see POST /v1/admin/budgets.")


class KeyPatch(RequestBody):
    """What to change; fields left out stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    role: Role | None = Field(default=None, description="A new role.")
    collections: list[str] | None = Field(default=None, max_length=1000, description="A new limit.")


class KeyBody(ResponseBody):
    """A key. The secret is not here: it was shown once."""

    id: str = Field(description="The key's id.", examples=["key_01k9"])
    object: Literal["api_key"] = Field(default="api_key", description="Always `api_key`.")
    name: str = Field(description="Its name.")
    role: Role = Field(description="What it may do.")
    user_id: str = Field(description="Whom its use is booked on.")
    prefix: str = Field(description="The first characters of the secret.", examples=["fn_a1b2c3"])
    collections: list[str] | None = Field(description="Collections it is limited to; null is all.")
    created_at: str = Field(description="RFC 3339 UTC.")
    expires_at: str | None = Field(description="RFC 3339 UTC; null is never.")
    revoked_at: str | None = Field(description="RFC 3339 UTC; null while it works.")

    @classmethod
    def of(cls, key: ApiKey) -> "KeyBody":
        """The body for a key."""
        return cls(**key_fields(key))


class NewKeyBody(KeyBody):
    """A key that was just made."""

    secret: str = Field(description="Shown this once; store it now.", examples=["fn_…"])

    @classmethod
    def created(cls, key: ApiKey, secret: str) -> "NewKeyBody":
        """The body for a new key."""
        return cls(**key_fields(key), secret=secret)


def key_fields(key: ApiKey) -> dict[str, object]:  # the fields both bodies share
    """A key's fields as the bodies show them."""
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "user_id": key.user_id,
        "prefix": key.prefix,
        "collections": list(key.collections) if key.collections is not None else None,
        "created_at": rfc3339(key.created_at),
        "expires_at": rfc3339(key.expires_at) if key.expires_at is not None else None,
        "revoked_at": rfc3339(key.revoked_at) if key.revoked_at is not None else None,
    }


class GenerationProgress(ResponseBody):
    """How far a generation is that is being built."""

    done: int = Field(description="Chunks that have their vector.", examples=[1200])
    total: int = Field(description="Chunks that need one; 0 while they are counted.", examples=[4000])
    error: str | None = Field(description="Why it stands still until the next start; null while it goes on.")


class GenerationBody(ResponseBody):
    """The vectors of one embedder, over all tenants."""

    id: int = Field(description="The generation's number.", examples=[2])
    object: Literal["generation"] = Field(default="generation", description="Always `generation`.")
    status: GenerationStatus = Field(
        description="building, ready (the swap is next), active (searched), previous (kept until it is confirmed "
        "that it is not needed), or retired (its vectors are gone or going)."
    )
    model: str = Field(description="The embedding model.", examples=["all-MiniLM-L6-v2"])
    revision: str = Field(description="Identifies its weights.")
    dim: int = Field(description="Dimensions.", examples=[384])
    rejected: bool = Field(
        description="An administrator went back from it: a start that asks for its embedder does not build it again."
    )
    progress: GenerationProgress | None = Field(description="Null unless it is being built by this process.")
    created_at: str = Field(description="When its building began, RFC 3339 UTC.")
    activated_at: str | None = Field(description="When it was first searched or searched again; null if never.")
    replaced_at: str | None = Field(description="When another took its place; null if none did.")
    purged: bool = Field(description="It has no vectors any more.")

    @classmethod
    def of(cls, generation: Generation, building: Building | None) -> "GenerationBody":
        """The body for a generation; `building` is what this process builds now."""
        progress = None
        if building is not None and building.generation == generation.id:
            progress = GenerationProgress(done=building.done, total=building.total, error=building.error)
        return cls(
            id=generation.id,
            status=generation.status,
            model=generation.model,
            revision=generation.revision,
            dim=generation.dim,
            rejected=generation.rejected_at is not None,
            progress=progress,
            created_at=rfc3339(generation.created_at),
            activated_at=rfc3339(generation.activated_at) if generation.activated_at is not None else None,
            replaced_at=rfc3339(generation.replaced_at) if generation.replaced_at is not None else None,
            purged=generation.purged_at is not None,
        )
