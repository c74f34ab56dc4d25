"""app.reach says which rows a caller reaches, by role and key."""

import pytest

from app.reach import Reach, reach_of
from app.types import Principal, Role


@pytest.mark.parametrize(
    ("role", "collections", "user_id", "key_id"),
    [
        (Role.ADMIN, None, None, None),
        (Role.ADMIN, ("col_1",), None, "key_1"),
        (Role.MEMBER, None, "ann", None),
        (Role.MEMBER, (), "ann", "key_1"),
        (Role.READER, None, "ann", None),
        (Role.READER, ("col_1",), "ann", "key_1"),
    ],
)
def test_a_role_limits_to_the_user_and_collections_limit_to_the_key(
    role: Role, collections: tuple[str, ...] | None, user_id: str | None, key_id: str | None
) -> None:
    principal = Principal("acme", "ann", "key_1", role, collections)

    assert reach_of(principal) == Reach("acme", user_id, key_id)
