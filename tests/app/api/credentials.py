"""Headers of callers of a tenant: with a key, and as our own page signed in."""

from app.access.cookie import COOKIE, CSRF_HEADER, csrf_token
from app.server.state import State
from app.types import Principal, Role


def key_of(
    state: State, role: Role, *, tenant: str = "default", collections: tuple[str, ...] | None = None
) -> dict[str, str]:
    _, secret = state.access.keys.create(
        tenant_id=tenant, user_id=f"{tenant}-{role}", name=role, role=role, collections=collections, expires_at=None
    )
    return {"Authorization": f"Bearer {secret}"}


def session_of(state: State, role: Role, *, tenant: str = "default") -> dict[str, str]:
    """The headers of our own page, signed in."""
    user_id = f"{tenant}-{role}"
    key, _ = state.access.keys.create(tenant_id=tenant, user_id=user_id, name=role, role=role)
    _, secret = state.access.sessions.open(Principal(tenant, user_id, key.id, role), with_key=True)
    return {"Cookie": f"{COOKIE}={secret}", CSRF_HEADER: csrf_token(secret), "Sec-Fetch-Site": "same-origin"}
