"""Turns generated text into the answer: its format, its footnotes and their verification, in worker threads."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from app.answering.generating.footnote_writer import FootnoteWriter, VerbatimWriter
from app.answering.generating.refusing import is_unconfirmed
from app.answering.languages.refusals import refusal
from app.answering.plain_text import AsWritten, PlainText
from app.answering.prepared import Prepared
from app.answering.quoting.rendering import quotation
from app.answering.verification.metered_models import Verification
from app.telemetry.stations import station
from generation.types import Completion
from retrieval.memo import Memo

Memory = Callable[[], AbstractContextManager[None]]


class AnswerWriter:
    """Writes one answer. `footnotes` holds its text and citations.

    >>> writer = begin(prepared, verification=verification, memo=memo)
    >>> shown = await writer.write("Revenue rose by 8 % [1].")
    >>> shown += await writer.finish()
    """

    def __init__(
        self,
        footnotes: FootnoteWriter,
        form: PlainText | AsWritten,
        *,
        memory: Memory = nullcontext,
    ) -> None:
        """`memory` opens the cache of computations on texts."""
        self.footnotes = footnotes
        self._memory = memory
        self._form = form

    async def write(self, text: str) -> str:
        """Take generated text, return the part of the answer that can be shown now."""
        return await self._written(self._form.feed(text), last=False)

    async def finish(self) -> str:
        """Close the answer: return the text that was held back."""
        return await self._written(self._form.finish(), last=True)

    def quote(self, prepared: Prepared, completion: Completion, *, pending: str) -> str:
        """The last text to show: `pending`, which `finish` returned, followed by quotes where nothing is verified.

        An answer that was withheld is replaced by the quotes (docs/adr/0067), which were selected before generation.
        """
        question, selection = prepared.question, prepared.selection
        withheld = self.footnotes.withheld
        if selection is None or not selection.quotes:
            return pending
        if not is_unconfirmed(question, prepared.context, self.footnotes, completion):
            return pending
        text = self.footnotes.quote(quotation(selection.quotes, form=question.format, pages=prepared.pages))
        return text if withheld else pending + text

    async def _written(self, text: str, *, last: bool) -> str:
        """Feed the footnote writer, in a worker thread where a sentence may end and be verified."""

        def write() -> str:
            with self._memory():
                return self.footnotes.feed(text) + (self.footnotes.finish() if last else "")

        if not last and not self.footnotes.closes(text):
            return write()
        with station("verify"):
            return await asyncio.to_thread(write)


def begin(prepared: Prepared, *, verification: Verification, memo: Memo) -> AnswerWriter:
    """The writer of a question's answer. `memo` caches computations on texts."""
    memory = partial(memo.of, prepared.question.principal.tenant_id)
    question, sources = prepared.question, prepared.context.sources
    form = PlainText() if question.format == "text" else AsWritten()
    if question.json_schema is not None:
        return AnswerWriter(VerbatimWriter(), form)
    with memory():
        verifier = verification.verifier(question, sources, meter=prepared.meter)
    footnotes = FootnoteWriter(
        sources,
        pages=prepared.pages,
        verifier=verifier,
        strict=question.strict,
        refusal=refusal(question.text),
    )
    return AnswerWriter(footnotes, form, memory=memory)
