"""Checks that a user and its key may still act, for work that runs without a request of theirs."""

from collections.abc import Callable

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.documents import api_key, app_user, tenant
from app.errors import Forbidden
from app.types import OPENID, Principal, Role


class ActingPrincipals:
    """Finds the principal of a key anew, with the role and the collections that it has now.

    Example:
        >>> principals.of("acme", user_id="ann", key_id="key_1").role
        <Role.MEMBER: 'member'>
    """

    def __init__(self, database: Database, *, openid_role: Role, clock: Callable[[], float]) -> None:
        """Users whom an OpenID provider signs in without a key have `openid_role`; `clock` gives Unix seconds."""
        self._database = database
        self._openid_role = openid_role
        self._clock = clock

    def of(self, tenant_id: str, *, user_id: str, key_id: str) -> Principal:
        """The principal, if it may act.

        Raises:
            Forbidden: The key is revoked or has expired, or its user or tenant is disabled; the message says which.
            StoreUnavailable: The database cannot be read.
        """
        owner = (
            sa.select(app_user.c.disabled_at, tenant.c.disabled_at.label("tenant_disabled_at"))
            .join(tenant, tenant.c.id == app_user.c.tenant_id)
            .where(app_user.c.tenant_id == tenant_id, app_user.c.id == user_id)
        )
        of_key = sa.select(api_key).where(
            api_key.c.id == key_id, api_key.c.tenant_id == tenant_id, api_key.c.user_id == user_id
        )
        with self._database.read() as connection:
            owned = connection.execute(owner).one_or_none()
            key = None if key_id == OPENID else connection.execute(of_key).one_or_none()
        if owned is None or owned.tenant_disabled_at is not None:
            raise Forbidden("The tenant is disabled.")
        if owned.disabled_at is not None:
            raise Forbidden("The user is disabled.")
        if key_id == OPENID:
            return Principal(tenant_id, user_id, OPENID, self._openid_role)
        if key is None or key.revoked_at is not None:
            raise Forbidden("The key is revoked.")
        if key.expires_at is not None and key.expires_at <= self._clock():
            raise Forbidden("The key has expired.")
        collections = None if key.collections is None else tuple(key.collections)
        return Principal(tenant_id, user_id, key_id, Role(key.role), collections)
