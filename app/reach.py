"""Which of a tenant's conversations and answers a caller reaches: the one place where a role decides about rows."""

from dataclasses import dataclass

from app.types import Principal, Role


@dataclass(frozen=True, slots=True)
class Reach:
    """The rows that a caller reads and changes: those of one tenant.

    With `user_id` only those of that user, with `key_id` only those that this key made; None is no limit.
    """

    tenant_id: str
    user_id: str | None
    key_id: str | None


def reach_of(principal: Principal) -> Reach:
    """A caller's own rows; for an administrator those of all users.

    A key that is limited to collections reaches only what it made itself, since other rows may quote other collections.

    >>> reach_of(Principal("acme", "ann", "key_1", Role.READER))
    Reach(tenant_id='acme', user_id='ann', key_id=None)
    """
    return Reach(
        tenant_id=principal.tenant_id,
        user_id=None if principal.role is Role.ADMIN else principal.user_id,
        key_id=None if principal.collections is None else principal.key_id,
    )
