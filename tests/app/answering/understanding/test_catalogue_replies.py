"""What is replied to small talk from the documents in scope, and from no others."""

import json

import pytest

from app.answering.formats.answer_formats import ANSWER_SCHEMA, ANY_OBJECT, Format
from app.answering.question import Question
from app.answering.understanding.catalogue_replies import NAMED, CatalogueReplies
from app.answering.understanding.documents.meant import DocumentsMeant
from app.db.catalogue import CatalogueRepository
from app.db.session import Database
from app.types import Principal, Role
from retrieval.types import Comparison, Scope
from tests.app.db.samples import Library
from tests.databases import database, migrated_file, postgres_database, sqlite_database

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

LIST = "What documents do I have here?"


def question(
    text: str = LIST, *, scope: Scope | None = None, form: Format = "text", schema: str | None = None
) -> Question:
    return Question(
        request_id="req_1",
        endpoint="ask",
        principal=Principal("t1", "u", "k", Role.READER),
        text=text,
        scope=scope or Scope(tenant_id="t1"),
        format=form,
        json_schema=schema,
    )


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


@pytest.fixture
def replies(database: Database) -> CatalogueReplies:
    catalogue = CatalogueRepository(database)
    return CatalogueReplies(catalogue, DocumentsMeant(catalogue))


def test_documents_are_counted_and_named_the_newest_first(library: Library, replies: CatalogueReplies) -> None:
    for number in range(NAMED + 2):
        library.index(f"text {number}", filename=f"file {number:02}.txt")
    reply = replies.reply(question())

    assert reply is not None
    first, listed = reply.split("\n\n")
    assert first == "There are 12 documents here. The newest 10 are:"
    assert listed.splitlines() == [f"- file {number:02}.txt" for number in range(11, 1, -1)]


def test_a_document_that_cannot_be_searched_yet_is_counted_apart(library: Library, replies: CatalogueReplies) -> None:
    assert replies.reply(question()) == "There are no documents here that can be searched."
    library.index("one", filename="one.txt")
    library.upload("two", filename="two.txt")

    assert replies.reply(question()) == "There is 1 document here. Not searchable yet: 1.\n\n- one.txt"
    assert replies.reply(question("hello")) == (
        "Hello. There is 1 document here. Ask what they say; each answer cites its passage."
    )


def test_only_the_documents_in_scope_are_told(library: Library, replies: CatalogueReplies, database: Database) -> None:
    others = library.collections.create("t1", "others").id
    own = library.index("own", filename="own.txt", metadata={"year": 2020})
    library.index("other", filename="other.txt", collection_id=others)
    Library(database, tenant_id="rival").index("rival", filename="rival.txt")

    everything = replies.reply(question())
    assert everything is not None
    assert "2 collections: default, others" in everything
    assert "own.txt" in everything and "other.txt" in everything and "rival" not in everything
    only_own = "There is 1 document here.\n\n- own.txt"
    for scope in (
        Scope(tenant_id="t1", collection_ids=(library.collection_id,)),
        Scope(tenant_id="t1", document_ids=(own.id,)),
        Scope(tenant_id="t1", filter=Comparison("year", "$eq", 2020)),
    ):
        assert replies.reply(question(scope=scope)) == only_own
    nothing = Scope(tenant_id="t1", collection_ids=())
    assert replies.reply(question(scope=nothing)) == "There are no documents here that can be searched."


def test_a_name_cannot_look_like_markdown_or_a_footnote(library: Library, replies: CatalogueReplies) -> None:
    library.index("text", filename="a `b` *c* [1].txt")

    assert replies.reply(question(form="markdown")) == "There is 1 document here.\n\n- `a b *c* [1].txt`"
    assert replies.reply(question(form="text")) == "There is 1 document here.\n\n- a `b` *c* [1].txt"


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("hello", "Hello. There are no documents here"),
        ("Danke!", "Gern geschehen."),
        ("Guten Tag", "Hallo. Hier sind keine Dokumente"),
        ("¿Quién eres?", "Soy Footnote."),
        ("Quels documents y a-t-il ?", "Il n'y a ici aucun document"),
        ("What can you do?", "I am Footnote."),
    ],
)
def test_the_reply_is_in_the_language_of_the_question(
    library: Library, replies: CatalogueReplies, text: str, begins: str
) -> None:
    assert (replies.reply(question(text)) or "").startswith(begins)


def test_other_questions_and_other_schemas_have_no_reply(library: Library, replies: CatalogueReplies) -> None:
    assert replies.reply(question("What can you do about rust?")) is None
    assert replies.reply(question("hello", form="json", schema=ANY_OBJECT)) is None
    assert replies.reply(question("hello", form="json", schema=ANSWER_SCHEMA)) is not None
    assert replies.reply(question("hello", form="json", schema=json.dumps({"type": "array"}))) is None
