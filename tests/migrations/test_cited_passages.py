"""Revision 0038: passages of turns from before are followed, those of earlier versions at the next start."""

import sqlalchemy as sa

from app.db.cited_passages import CitedPassageRepository
from app.db.conversations import ConversationRepository
from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.tables.answers import cited_passage
from app.types import Principal, Role, Turn
from tests.app.db.samples import Library

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)


def test_passages_of_earlier_turns_are_known_and_those_of_earlier_versions_are_looked_for(
    migrated_database: Database,
) -> None:
    library = Library(migrated_database)
    changed, same = library.index("The fee is 30 euros."), library.index("The cellar is dry.")
    conversations = ConversationRepository(migrated_database)
    conversation = conversations.create(ANN)
    citations = [
        {"document_id": document.id, "version": 1, "start_char": 0, "end_char": 18, "cited_text": "x"}
        for document in (changed, same, changed)
    ]
    early = {"index": 1, "cited_text": "an early answer"}
    deleted = {**citations[0], "document_id": "doc_of_old"}
    turn = Turn(
        request_id="req_1",
        question="How much?",
        standalone=None,
        answer="30 euros [1].",
        answered=True,
        citations=(*citations, early, deleted),
    )
    conversations.append(conversation.id, turn)

    library.index_again(changed, "The fee is 35 euros.")
    downgrade(migrated_database, "0035")
    upgrade(migrated_database)

    with migrated_database.read() as connection:
        rows = connection.execute(sa.select(cited_passage).order_by(cited_passage.c.document_id)).all()
    known = sorted((row.document_id, row.version, row.start_char, row.end_char, row.place_version) for row in rows)
    assert known == sorted((document.id, 1, 0, 18, 1) for document in (changed, same))
    assert CitedPassageRepository(migrated_database).superseded() == (changed.id,)
