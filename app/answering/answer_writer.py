"""How generated text becomes the answer: its form, its footnotes, and where their verification runs."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from app.answering.fallback import Fallback
from app.answering.footnote_writer import FootnoteWriter, VerbatimWriter
from app.answering.plain_text import AsWritten, PlainText
from app.answering.prepared import Prepared
from app.answering.refusals import refusal
from app.answering.verification.metered_models import Verification
from app.answering.verification.verifier import Verifier
from app.db.contents import ContentRepository
from app.telemetry.stations import station
from generation.types import Completion
from ingestion.types import Page
from retrieval.memo import Memo
from retrieval.types import Context

Memory = Callable[[], AbstractContextManager[None]]


class AnswerWriter:
    """Writes one answer. `footnotes` holds what was written and cited."""

    def __init__(self, footnotes: FootnoteWriter, form: PlainText | AsWritten, *, memory: Memory = nullcontext) -> None:
        self.footnotes = footnotes
        self._memory = memory
        self._form = form

    async def write(self, text: str) -> str:
        """Take generated text, return what can be shown of it now."""
        return await self._written(self._form.feed(text), last=False)

    async def finish(self) -> str:
        """No more text comes."""
        return await self._written(self._form.finish(), last=True)

    async def quoted(self, fallback: Fallback, prepared: Prepared, completion: Completion, *, pending: str) -> str:
        """What is told last: `pending`, what `finish` returned, with what is quoted behind it or instead of it."""

        def quote() -> str:
            with self._memory():
                withheld = self.footnotes.withheld
                quoted = fallback.quote(prepared, self.footnotes, completion)
            if not quoted:
                return pending
            return quoted if withheld else pending + quoted

        with station("quote"):
            return await asyncio.to_thread(quote)

    async def _written(self, text: str, *, last: bool) -> str:
        """In a worker thread where a sentence may end and be verified."""

        def write() -> str:
            with self._memory():
                return self.footnotes.feed(text) + (self.footnotes.finish() if last else "")

        if not last and not self.footnotes.closes(text):
            return write()
        with station("verify"):
            return await asyncio.to_thread(write)


def begin(prepared: Prepared, *, verification: Verification | None, memo: Memo) -> AnswerWriter:
    """The writer of a question's answer; without models it verifies by words alone.

    `memo` remembers what is worked out about texts on the way.
    """
    memory = partial(memo.of, prepared.question.principal.tenant_id)
    question, sources = prepared.question, prepared.context.sources
    form = PlainText() if question.format == "text" else AsWritten()
    if question.json_schema is not None:
        return AnswerWriter(VerbatimWriter(), form)
    with memory():
        verifier = Verifier(sources, question=question.text)
    if verification is not None:
        verifier, prepared.verification = verification.begin(question, sources)
    footnotes = FootnoteWriter(
        sources,
        pages=prepared.pages,
        verifier=verifier,
        strict=question.strict,
        refusal=refusal(question.text),
    )
    return AnswerWriter(footnotes, form, memory=memory)


def page_tables(
    contents: ContentRepository, context: Context, *, tenant_id: str
) -> dict[tuple[str, int], tuple[Page, ...]]:
    """Page tables of the documents with a source that crosses a page boundary."""
    chunks = [source.hit.chunk for source in context.sources]
    wanted = {(chunk.document_id, chunk.version) for chunk in chunks if chunk.page_start != chunk.page_end}
    tables = {}
    for document_id, version in wanted:
        pages, _ = contents.structure(document_id, tenant_id=tenant_id, version=version)
        tables[document_id, version] = pages
    return tables
