"""Documents that are sent in /v1/messages, by Anthropic's client: answered from, cited exactly, and stored nowhere."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from structlog.testing import capture_logs

from app.db.portable import count_rows
from app.db.session import Database
from app.db.tables.rollups import usage_rollup_15m, usage_rollup_day, usage_rollup_facet, usage_rollup_month
from app.types import Operation
from tests.app.api.openai.openai_server import Service
from tests.ingestion.pdf_file import pdf_bytes
from tests.server import ADMIN_KEY

SHIPS = "The keeper counted forty ships in the harbour of Lindau."
QUESTION = "How many ships did the keeper count in the harbour of Lindau?"
LIGHT = "The lighthouse of Lindau was built in 1856 by the Bavarian railway."
ROLLUPS = {table.name for table in (usage_rollup_15m, usage_rollup_day, usage_rollup_month, usage_rollup_facet)}
BILLED = {"answer_outcome", "api_request", "usage_event", *ROLLUPS}


@pytest.fixture
def client(openai_service: Service) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=openai_service.url, api_key=ADMIN_KEY, max_retries=0) as client:
        yield client


def sent(source: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "document", "source": source, "citations": {"enabled": True}, **fields}


def text(data: str, **fields: Any) -> dict[str, Any]:
    return sent({"type": "text", "media_type": "text/plain", "data": data}, **fields)


def blocks(*texts: str, **fields: Any) -> dict[str, Any]:
    return sent({"type": "content", "content": [{"type": "text", "text": one} for one in texts]}, **fields)


def pdf(data: str, **fields: Any) -> dict[str, Any]:
    return sent({"type": "base64", "media_type": "application/pdf", "data": data}, **fields)


def asking(*documents: dict[str, Any], question: str = QUESTION, **fields: Any) -> dict[str, Any]:
    content = [*documents, {"type": "text", "text": question}]
    return {"model": "footnote", "max_tokens": 100, "messages": [{"role": "user", "content": content}], **fields}


def places(message: anthropic.types.Message) -> list[Any]:
    return [place for block in message.content if block.type == "text" for place in block.citations or []]


def facts(message: anthropic.types.Message) -> dict[str, Any]:
    extra = message.model_extra
    assert extra is not None
    told: dict[str, Any] = extra["footnote"]
    return told


def test_a_text_is_answered_from_with_its_exact_characters(client: anthropic.Anthropic) -> None:
    data = f"{LIGHT}\r\n\r\n\u00ad{SHIPS}\r\n"

    message = client.messages.create(**asking(text("Of something else."), text(data, title="Harbour")))

    [place] = places(message)
    assert isinstance(place, anthropic.types.CitationCharLocation)
    assert (place.document_index, place.document_title, place.file_id) == (1, "Harbour", None)
    assert SHIPS in place.cited_text
    assert data[place.start_char_index : place.end_char_index] == place.cited_text
    told = facts(message)
    assert (told["answered"], told["sources"]) == (True, "sent")
    assert [one["cited_text"] for one in told["citations"]] == [place.cited_text]


def test_content_is_cited_by_whole_blocks(client: anthropic.Anthropic) -> None:
    message = client.messages.create(**asking(blocks("A first block.", " ", SHIPS, LIGHT, title="Harbour")))

    [place] = places(message)
    assert isinstance(place, anthropic.types.CitationContentBlockLocation)
    assert (place.start_block_index, place.end_block_index) == (2, 3)
    assert (place.cited_text, place.document_index, place.document_title) == (SHIPS, 0, "Harbour")
    assert [one["cited_text"] for one in facts(message)["citations"]] == [SHIPS]


def test_a_pdf_is_cited_by_its_pages(client: anthropic.Anthropic) -> None:
    data = base64.b64encode(pdf_bytes([["Of something else."], [SHIPS]])).decode()

    message = client.messages.create(**asking(pdf(data, title="Harbour.pdf")))

    [place] = places(message)
    assert isinstance(place, anthropic.types.CitationPageLocation)
    assert (place.cited_text, place.document_title) == (SHIPS, "Harbour.pdf")
    assert (place.start_page_number, place.end_page_number) == (2, 3)


@pytest.mark.parametrize("document", [text(f"{LIGHT}\n\n{SHIPS}"), blocks(LIGHT, SHIPS)], ids=["text", "content"])
def test_a_stream_accumulates_to_the_same_message(client: anthropic.Anthropic, document: dict[str, Any]) -> None:
    whole = client.messages.create(**asking(document))

    with client.messages.stream(**asking(document)) as stream:
        streamed = stream.get_final_message()

    assert places(streamed) == places(whole) != []
    assert [block.text for block in streamed.content if block.type == "text"] == ["Forty ships."]
    assert streamed.usage.output_tokens == whole.usage.output_tokens


def test_documents_of_earlier_messages_count_and_are_numbered_in_the_order_of_the_request(
    openai_service: Service, client: anthropic.Anthropic
) -> None:
    first = {"role": "user", "content": [text(LIGHT), {"type": "text", "text": "When was it built?"}]}
    turns = [first, {"role": "assistant", "content": "In 1856."}, *asking(text(SHIPS))["messages"]]

    [place] = places(client.messages.create(**{**asking(), "messages": turns}))

    assert (place.document_index, place.cited_text) == (1, SHIPS)
    assert "In 1856." in "".join(map(chr, openai_service.runner.requests[-1].prompt))


def test_without_citations_enabled_the_answer_names_no_place(client: anthropic.Anthropic) -> None:
    message = client.messages.create(**asking({**text(SHIPS), "citations": {"enabled": False}}))

    assert [block.text for block in message.content if block.type == "text"] == ["Forty ships."]
    assert places(message) == []
    assert [one["cited_text"] for one in facts(message)["citations"]] == [SHIPS]


def test_the_context_is_told_to_the_language_model_and_never_cited(
    openai_service: Service, client: anthropic.Anthropic
) -> None:
    [place] = places(client.messages.create(**asking(text(SHIPS, title="Harbour", context="Kept since 1901."))))

    assert "Harbour: Kept since 1901." in "".join(map(chr, openai_service.runner.requests[-1].prompt))
    assert place.cited_text == SHIPS


def test_it_is_answered_from_what_was_sent_alone(openai_service: Service, client: anthropic.Anthropic) -> None:
    made = openai_service.http.post("/v1/collections", json={"name": "sent elsewhere"}).json()["id"]
    openai_service.upload(SHIPS, "quay.txt", collection_id=made)

    refused = client.messages.create(**asking(text("Bread is baked from flour.")))

    assert (facts(refused)["answered"], facts(refused)["citations"], places(refused)) == (False, [], [])


def test_a_text_that_is_sent_is_answered_and_cited_as_one_that_is_stored(
    openai_service: Service, client: anthropic.Anthropic
) -> None:
    data = "\n\n".join([LIGHT, "Bread is baked from flour.", SHIPS, "The mole has a lion of stone."] * 3)
    made = openai_service.http.post("/v1/collections", json={"name": "sent and stored"}).json()["id"]
    openai_service.upload(data, "Harbour.txt", collection_id=made)

    stored = client.messages.create(**{**asking(), "model": f"footnote:{made}"})
    answered = client.messages.create(**asking(text(data, title="Harbour.txt")))

    def told(message: anthropic.types.Message) -> list[tuple[Any, ...]]:
        return [
            (place.cited_text, place.start_char_index, place.end_char_index, place.document_title)
            for place in places(message)
        ]

    assert told(answered) == told(stored) != []
    assert facts(answered)["answer"] == facts(stored)["answer"]


def test_the_bill_has_the_passages_embedding_and_is_what_the_ledger_has(
    openai_service: Service, client: anthropic.Anthropic
) -> None:
    usage = (message := client.messages.create(**asking(text(f"{LIGHT}\n\n{SHIPS}")))).usage
    rows = openai_service.state.usage.ledger.usage(message.id)

    [embedded] = [row for row in rows if row.operation is Operation.EMBED_DOC]
    assert embedded.input_tokens > len(SHIPS.split())
    told = usage.input_tokens + (usage.cache_read_input_tokens or 0)
    assert (told, usage.output_tokens) == (
        sum(row.input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
    )
    bill = (usage.model_extra or {})["footnote"]
    assert sum(bill["components"].values()) == bill["total_tokens"]


def test_nothing_of_what_was_sent_is_stored_or_logged(openai_service: Service, client: anthropic.Anthropic) -> None:
    state, secret = openai_service.state, "Zarathustrianism"
    before = rows_of(state.database)
    with capture_logs() as logged:
        message = client.messages.create(**asking(text(f"{secret}. {SHIPS}", title=f"{secret} title")))
        with pytest.raises(anthropic.UnprocessableEntityError):
            client.messages.create(**asking({**text(SHIPS), "citations": {"enabled": secret}}))
        with pytest.raises(anthropic.UnprocessableEntityError):
            client.messages.create(**asking(text(" ", title=secret)))

    assert places(message)
    changed = {name for name, count in rows_of(state.database).items() if count != before[name]}
    assert changed <= BILLED
    assert secret not in str(logged)
    state.database.close()  # opened again at its next use: the write-ahead log is in the file now
    stored = [path for path in state.settings.data_dir.rglob("*") if path.is_file()]
    assert not [path for path in stored if secret.encode() in path.read_bytes()]


def test_an_idempotency_key_keeps_no_answer_about_what_was_sent(client: anthropic.Anthropic) -> None:
    once = {**asking(text(SHIPS)), "extra_headers": {"Idempotency-Key": "sent-once"}}

    assert places(client.messages.create(**once))
    with pytest.raises(anthropic.ConflictError) as again:
        client.messages.create(**once)

    body: Any = again.value.body
    assert body["type"] == "urn:footnote:problem:answer-not-kept"


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"type": "url", "url": "https://example.org/a.pdf"}, "'url' is not supported"),
        ({"type": "file", "file_id": "file_1"}, "'file' is not supported"),
        ({"type": "base64", "media_type": "image/png", "data": "QQ=="}, "'image/png' is not supported"),
        ({"type": "text", "media_type": "text/html", "data": "a"}, "'text/html' is not supported"),
        ({"type": "content", "content": [{"type": "image", "source": {}}]}, "'image' is not supported"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused_by_name(
    client: anthropic.Anthropic, source: dict[str, Any], named: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=named):
        client.messages.create(**asking(sent(source)))


def test_documents_that_cite_differently_are_refused(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="on all documents of a request or on none") as refused:
        client.messages.create(**asking(text(SHIPS), {**text(LIGHT), "citations": None}))

    body: Any = refused.value.body
    assert body["param"] == "messages.0.content.1.citations"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"model": "footnote:quay"}, "model"),
        ({"extra_body": {"footnote": {"collection_ids": ["a"]}}}, "footnote.collection_ids"),
        ({"extra_body": {"footnote": {"document_ids": ["a"]}}}, "footnote.document_ids"),
        ({"extra_body": {"footnote": {"filter": {"a": 1}}}}, "footnote.filter"),
    ],
)
def test_what_chooses_among_stored_documents_is_refused_beside_documents_that_are_sent(
    client: anthropic.Anthropic, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(**{**asking(text(SHIPS)), **fields})

    body: Any = refused.value.body
    assert body["param"] == named


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (pdf("%%%"), "not base64"),
        (pdf(base64.b64encode(b"no pdf").decode()), "Document 1: The file is not a PDF"),
        (pdf(base64.b64encode(b"%PDF-1.7 broken").decode()), "Document 1: "),
        (text("  \n"), "Document 1: The document holds no text"),
        (blocks(), "Document 1: The document holds no text"),
        (sent({"type": "text", "media_type": "text/plain"}), "has 'data'"),
        (text("\ud800"), ""),
    ],
)
def test_a_document_without_a_text_is_its_clients_error(
    openai_service: Service, document: dict[str, Any], said: str
) -> None:
    answer = openai_service.http.post(
        "/v1/messages", content=json.dumps(asking(document)), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 422, answer.text
    assert said in answer.json()["detail"]


def test_a_document_of_the_assistant_is_refused(client: anthropic.Anthropic) -> None:
    turns = [{"role": "assistant", "content": [text(SHIPS)]}, {"role": "user", "content": QUESTION}]

    with pytest.raises(anthropic.UnprocessableEntityError, match="documents are sent in messages of the user"):
        client.messages.create(**{**asking(), "messages": turns})


@pytest.mark.parametrize(
    ("documents", "setting"),
    [
        ([text("Of a harbour.")] * 21, "FOOTNOTE_INLINE_DOCUMENTS"),
        ([text("Of a harbour. " * 20_000)] * 2, "FOOTNOTE_INLINE_CHARS"),
        ([text("Of a harbour. " * 40_000)], "500,000 characters"),
        ([text("Of a harbour. " * 600_000)], "8 MiB"),
    ],
    ids=["documents", "characters together", "characters", "bytes"],
)
def test_too_much_is_413_and_says_which_limit(
    openai_service: Service, documents: list[dict[str, Any]], setting: str
) -> None:
    answer = openai_service.http.post("/v1/messages", json=asking(*documents))

    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"
    assert setting in answer.json()["detail"]


def rows_of(database: Database) -> dict[str, int]:
    with database.read() as connection:
        return count_rows(connection)
