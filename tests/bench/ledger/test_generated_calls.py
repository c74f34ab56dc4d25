"""tests.bench.ledger.generated_calls: the same year on both databases, and the ledger left as it was migrated."""

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.ledger import usage_event
from tests.bench.ledger.generated_calls import START, YEAR, generate, stored_bytes


def test_a_year_of_calls_is_generated_with_its_skew_and_the_indexes_are_there_again(
    migrated_database: Database,
) -> None:
    empty = stored_bytes(migrated_database)

    generate(migrated_database, 2000)

    columns = usage_event.c
    with migrated_database.read() as connection:
        times = sa.select(sa.func.min(columns.settled_at), sa.func.max(columns.settled_at))
        first, last = connection.execute(times).one()
        chats = sa.select(sa.func.count()).where(columns.operation == "chat")
        assert connection.execute(chats).scalar_one() == 1200
        people = sa.select(columns.user_id, sa.func.count()).group_by(columns.user_id)
        spent = sorted((calls for _, calls in connection.execute(people)), reverse=True)
        ids = connection.execute(sa.select(columns.event_id).order_by(columns.settled_at).limit(1)).scalar_one()
        indexes = {index["name"] for index in sa.inspect(connection).get_indexes("usage_event")}
    assert indexes == {index.name for index in usage_event.indexes}
    assert (first, ids) == (START * 1_000_000, "req_000000000000:1")
    assert last == (START + YEAR) * 1_000_000 - YEAR * 1_000_000 // 2000, "the last begins the last part of the year"
    # a user's part is the cube root's step: the first tenth of the 500 makes nearly half of the calls
    assert 0.35 < sum(spent[:50]) / 2000 < 0.6
    assert stored_bytes(migrated_database) > empty + 2000 * 100
