"""Revision 0043: sealed passwords are no part of what a downgrade or a backup keeps."""

import sqlalchemy as sa

from app.db.migration import downgrade, upgrade
from app.db.portable import count_rows
from app.db.session import Database
from app.db.tables.documents import job_secret


def test_sealed_passwords_are_forgotten_on_the_way_down_and_left_out_of_backups(migrated_database: Database) -> None:
    with migrated_database.write() as connection:
        connection.execute(sa.insert(job_secret).values(job_id="job_1", sealed=b"sealed", kept_at=1.0))
        assert "job_secret" not in count_rows(connection)

    downgrade(migrated_database, "0042")
    upgrade(migrated_database)

    with migrated_database.read() as connection:
        assert connection.execute(sa.select(job_secret)).all() == []
