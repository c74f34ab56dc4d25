"""Turns generated text into the answer: its format, its footnotes and their verification, in worker threads."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from app.answering.citing.citation import Pages
from app.answering.formats.plain_text import AsWritten, PlainText
from app.answering.generating.footnote_writer import FootnoteWriter, VerbatimWriter
from app.answering.languages.refusals import refusal
from app.answering.metering.meter import Meter
from app.answering.states.sources import Grounding
from app.answering.verification.metered_models import Verification
from app.telemetry.timing import timed
from retrieval.memo import Memo

Memory = Callable[[], AbstractContextManager[None]]


class AnswerWriter:
    """Writes one answer. `footnotes` holds its text and citations.

    >>> writer = begin(grounding, pages, meter, verification=verification, memo=memo)
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

    async def _written(self, text: str, *, last: bool) -> str:
        """Feed the footnote writer, in a worker thread where a sentence may end and be verified."""

        def write() -> str:
            with self._memory():
                return self.footnotes.feed(text) + (self.footnotes.finish() if last else "")

        if not last and not self.footnotes.closes(text):
            return write()
        with timed("verify"):
            return await asyncio.to_thread(write)


def begin(grounding: Grounding, pages: Pages, meter: Meter, *, verification: Verification, memo: Memo) -> AnswerWriter:
    """The writer of a question's answer. `meter` meters its verification, `memo` caches computations on texts."""
    question, sources = grounding.question, grounding.context.sources
    memory = partial(memo.of, question.principal.tenant_id)
    form = PlainText() if question.format == "text" else AsWritten()
    if question.json_schema is not None:
        return AnswerWriter(VerbatimWriter(), form)
    with memory():
        verifier = verification.verifier(question, sources, meter=meter)
        refused = refusal(question.text)
    footnotes = FootnoteWriter(
        sources,
        pages=pages,
        verifier=verifier,
        strict=question.strict,
        refusal=refused,
    )
    return AnswerWriter(footnotes, form, memory=memory)
