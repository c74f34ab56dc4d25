"""Writes an answer as Anthropic's message: its blocks, and the events of a stream."""

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol

from app.answering.answers.answer import Answer, SourcesFound, TextDelta
from app.answering.citing.citation import Citation
from app.answering.metering.token_usage import TokenUsage
from app.answering.running.open_answer import Event
from app.api.anthropic.content_blocks import BlockCitation, BlockPiece, BlockText, ContentBlocks, whole_blocks
from app.api.anthropic.schemas import (
    AnswerBlock,
    CharLocation,
    Location,
    MessageBody,
    MessageFacts,
    MessageUsage,
    PageLocation,
)
from app.api.errors import anthropic_error, failure_of
from app.api.event_stream import sse
from app.api.openai.choices import Several
from app.api.schemas.answers import CitationBody
from app.api.schemas.token_usage import UsageBody

EVENTS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
)


class Numbers(Protocol):
    """Numbers the documents of an answer from 0, and names the places of its passages in them."""

    @property
    def sources(self) -> Literal["stored", "sent"]:
        """Where the documents are: stored, or sent with the question."""
        ...

    def add(self, document_ids: Iterable[str]) -> None:
        """Number these documents, if they are new."""
        ...

    def locations(self, citation: Citation) -> list[Location]:
        """Where a citation's passage is; nowhere where citations are not wanted."""
        ...

    def shown(self, citation: Citation) -> Citation:
        """The footnote as it is told of."""
        ...


class DocumentNumbers:
    """Numbers stored documents: those of an answer's sources in their order, then further ones."""

    sources: Literal["stored"] = "stored"

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def add(self, document_ids: Iterable[str]) -> None:
        """Number these documents, if they are new."""
        for document_id in document_ids:
            self._numbers.setdefault(document_id, len(self._numbers))

    def shown(self, citation: Citation) -> Citation:
        """The footnote as it is."""
        return citation

    def locations(self, citation: Citation) -> list[Location]:
        """Where a citation's passage is: its characters, and its pages where there are any."""
        self.add([citation.document_id])
        passage: dict[str, Any] = {
            "cited_text": citation.cited_text,
            "document_index": self._numbers[citation.document_id],
            "document_title": citation.filename,
            "file_id": citation.document_id,
        }
        chars = CharLocation(**passage, start_char_index=citation.start_char, end_char_index=citation.end_char)
        if citation.page_start is None or citation.page_end is None:
            return [chars]
        pages = PageLocation(**passage, start_page_number=citation.page_start, end_page_number=citation.page_end + 1)
        return [chars, pages]


class MessageWriter:
    """Turns the events of one answer into pieces of blocks. `answer` is the answer once it has ended."""

    def __init__(self, documents: Numbers) -> None:
        """`documents` numbers those of the answer."""
        self.documents = documents
        self.answer: Answer | None = None
        self._blocks = ContentBlocks()
        self._told = 0

    def pieces(self, event: Event) -> Iterator[BlockPiece]:
        """The pieces that are certain with this event.

        Raises:
            DeadlinePassed, GenerationError: The answer failed.
        """
        if isinstance(event, SourcesFound):
            self.documents.add(source.hit.chunk.document_id for source in event.sources)
        elif isinstance(event, TextDelta):
            self._blocks.write(event.text)
            self._told += len(event.citations)
            yield from self._blocks.pieces(event.citations)
        elif isinstance(event, Answer):
            if (failure := failure_of(event)) is not None:
                raise failure
            self.answer = event
            yield from self._blocks.pieces(event.citations[self._told :], final=True)


def message_of(writer: MessageWriter, pieces: Sequence[BlockPiece], usage: TokenUsage, *, model: str) -> MessageBody:
    """The whole message of an answer that has ended, with all of its pieces."""
    answer = _ended(writer)
    content = [
        AnswerBlock(text=text, citations=[place for one in cited for place in writer.documents.locations(one)] or None)
        for text, cited in whole_blocks(pieces)
    ]
    return MessageBody(
        id=answer.id,
        model=model,
        content=content,
        stop_reason=_stop_reason(answer),
        usage=MessageUsage.of(UsageBody.of(usage)),
        footnote=_facts(answer, writer.documents),
    )


class MessageStream:
    """The event stream of one request. `events` can be read once; `error_event` ends it after a failure."""

    def __init__(self, choices: Several, *, model: str, documents: Numbers) -> None:
        """`documents` numbers those of the answer."""
        self._choices = choices
        self._model = model
        self._writer = MessageWriter(documents)
        self._open: int | None = None

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The events of the message, ended by `message_stop`.

        Raises:
            DeadlinePassed, GenerationError: The answer failed.
        """
        started: dict[str, Any] = {
            "id": self._choices.request_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        yield _event("message_start", message=started)
        async with aclosing(self._choices.stream()) as stream:
            async for _, event in stream:
                for piece in self._writer.pieces(event):
                    for rendered in self._rendered(piece):
                        yield rendered
        if self._open is not None:
            yield _event("content_block_stop", index=self._open)
        answer = _ended(self._writer)
        usage = MessageUsage.of(UsageBody.of(await self._choices.usage([answer])))
        ended = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        facts = _facts(answer, self._writer.documents).model_dump()
        yield _event("message_delta", delta=ended, usage=usage.model_dump(), footnote=facts)
        yield _event("message_stop")

    def error_event(self, problem: dict[str, object]) -> bytes:
        """The last event of a failed stream: Anthropic's error, and the problem document."""
        return sse("error", json.dumps({**problem, "type": "error", "error": anthropic_error(problem)}))

    def _rendered(self, piece: BlockPiece) -> Iterator[bytes]:
        if piece.block != self._open:
            if self._open is not None:
                yield _event("content_block_stop", index=self._open)
            self._open = piece.block
            empty = {"type": "text", "text": "", "citations": None}
            yield _event("content_block_start", index=piece.block, content_block=empty)
        match piece:
            case BlockText(text=text):
                yield _event("content_block_delta", index=piece.block, delta={"type": "text_delta", "text": text})
            case BlockCitation(citation=citation):
                for place in self._writer.documents.locations(citation):
                    delta = {"type": "citations_delta", "citation": place.model_dump()}
                    yield _event("content_block_delta", index=piece.block, delta=delta)


def _ended(writer: MessageWriter) -> Answer:
    assert writer.answer is not None, "an answer's events end with the answer"
    return writer.answer


def _stop_reason(answer: Answer) -> Any:
    return "max_tokens" if answer.finish_reason in {"length", "repetition"} else "end_turn"


def _facts(answer: Answer, documents: Numbers) -> MessageFacts:
    return MessageFacts(
        answered=answer.reason is None,
        reason=answer.reason,
        answer=answer.text,
        sources=documents.sources,
        citations=[CitationBody.of(documents.shown(citation)) for citation in answer.citations],
    )


def _event(name: str, **fields: object) -> bytes:
    return sse(name, json.dumps({"type": name, **fields}, ensure_ascii=False))
