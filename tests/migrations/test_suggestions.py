"""Revisions 0023 and 0033: documents from before are yet to be asked for questions, and lose nothing else."""

from dataclasses import replace

import sqlalchemy as sa

from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.suggestions import KeptQuestion, SuggestionRepository
from app.db.tables.documents import document_version
from tests.app.db.samples import Library
from tests.migrations.originals import name_as_before

QUESTION = KeptQuestion("When was the ferry built?", 4, 40, "1987")


def test_suggestions_are_kept_with_the_version_and_made_again_after_a_downgrade(migrated_database: Database) -> None:
    library = Library(migrated_database)
    document = library.index("the ferry was built in 1987")
    kept = SuggestionRepository(migrated_database)
    before = kept.read(document.id, tenant_id="t1", version=1)
    kept.keep(document.id, tenant_id="t1", version=1, questions=[QUESTION])
    written = kept.read(document.id, tenant_id="t1", version=1)

    name_as_before(migrated_database)
    downgrade(migrated_database, "0022")
    upgrade(migrated_database)

    assert (before, written) == (None, (QUESTION,))
    assert kept.read(document.id, tenant_id="t1", version=1) is None
    with migrated_database.read() as connection:
        assert connection.execute(sa.select(document_version.c.text)).scalars().all() == ["the ferry was built in 1987"]


def test_none_found_is_kept_as_well(migrated_database: Database) -> None:
    document = Library(migrated_database).index("nothing")
    kept = SuggestionRepository(migrated_database)
    kept.keep(document.id, tenant_id="t1", version=1, questions=())

    assert kept.read(document.id, tenant_id="t1", version=1) == ()


def test_documents_without_a_question_are_asked_again_and_others_keep_theirs(migrated_database: Database) -> None:
    library = Library(migrated_database)
    with_one, without = library.index("the ferry was built in 1987"), library.index("nothing")
    kept = SuggestionRepository(migrated_database)
    kept.keep(with_one.id, tenant_id="t1", version=1, questions=[QUESTION])
    kept.keep(without.id, tenant_id="t1", version=1, questions=())

    downgrade(migrated_database, "0032")
    upgrade(migrated_database)

    assert kept.read(with_one.id, tenant_id="t1", version=1) == (QUESTION,)
    assert kept.read(without.id, tenant_id="t1", version=1) is None


def test_whether_an_answer_was_confirmed_is_kept_and_earlier_ones_were(migrated_database: Database) -> None:
    document = Library(migrated_database).index("the ferry was built in 1987")
    kept = SuggestionRepository(migrated_database)
    likely = replace(QUESTION, confirmed=False)
    kept.keep(document.id, tenant_id="t1", version=1, questions=[QUESTION, likely])
    written = kept.read(document.id, tenant_id="t1", version=1)
    with migrated_database.write() as connection:
        before = [["When was the ferry built?", 4, 40, "1987"]]
        connection.execute(sa.update(document_version).values(suggestions=before))

    assert written == (QUESTION, likely)
    assert kept.read(document.id, tenant_id="t1", version=1) == (QUESTION,)
