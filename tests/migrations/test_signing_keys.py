"""Revision 0046: the keys of receipts go on the way down, and come back empty."""

import sqlalchemy as sa

from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.tables.access import signing_key


def test_signing_keys_go_on_the_way_down(migrated_database: Database) -> None:
    with migrated_database.write() as connection:
        row = {"id": "k", "public": b"p" * 32, "sealed": None, "created_at": 1.0, "retired_at": 2.0}
        connection.execute(sa.insert(signing_key).values(row))

    downgrade(migrated_database, "0044")
    with migrated_database.read() as connection:
        assert "signing_key" not in sa.inspect(connection).get_table_names()
    upgrade(migrated_database)

    with migrated_database.read() as connection:
        assert connection.execute(sa.select(signing_key)).all() == []
