"""Where nothing that a model wrote could be confirmed: the sources' own sentences, quoted behind it (docs/adr/0067)."""

from app.answering.footnote_writer import FootnoteWriter
from app.answering.language import is_english
from app.answering.prepared import Prepared
from app.answering.quoting.quoter import Quoter
from app.answering.quoting.rendering import block_quotation
from app.answering.refusals import refuses
from app.errors import BudgetExceeded, StoreUnavailable
from generation.types import Completion, FinishReason


class Fallback:
    """Quotes what an answer should have said. One instance serves every request."""

    def __init__(self, quoter: Quoter) -> None:
        self._quoter = quoter

    def quote(self, prepared: Prepared, writer: FootnoteWriter, completion: Completion) -> str:
        """Quote behind a finished answer of which nothing is verified, in place of one that was withheld for it.

        What is asked for is found where a reader pointed before, so mostly nothing more is read. A refusal stays one.

        Returns:
            What is to be shown behind the answer, or instead of it where it was withheld; "" where nothing is.
        """
        if not _failed(prepared, writer, completion):
            return ""
        try:
            reading = self._quoter.read_again(prepared.question, prepared.context, prepared.located)
        except (BudgetExceeded, StoreUnavailable):
            return ""  # the answer is there, and worth no less than without
        if not reading.quotes:
            return ""
        prepared.reading = reading
        # Each stands for itself, so the likeliest comes first; told as one answer they are in reading order.
        quotes = sorted(reading.quotes, key=lambda quote: -quote.score)
        return writer.quote(*block_quotation(quotes, form=prepared.question.format, pages=prepared.pages))


def _failed(prepared: Prepared, writer: FootnoteWriter, completion: Completion) -> bool:
    """Whether a whole answer claims something, as prose does, and none of it is verified."""
    question = prepared.question
    if completion.finish_reason is not FinishReason.STOP or completion.error is not None:
        return False
    if question.sampling.logprobs is not None or not prepared.context.sources:
        return False
    if not is_english(question.text):  # what looks for sentences to quote reads English
        return False
    if writer.withheld:
        return True
    return writer.claims and not writer.confirmed and not refuses(writer.answer, cited=bool(writer.citations))
