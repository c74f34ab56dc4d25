"""Answering by quoting, with what the embedder reads for it on the bill; no row speaks of a model that generates."""

from app.answering.calls import CallNumber
from app.answering.formats import ANSWER_SCHEMA, ANY_OBJECT
from app.answering.language import is_english
from app.answering.locator import AnswerSpan, Located
from app.answering.question import Question
from app.answering.quoting.selection import THRESHOLD, ExtractiveReader, Reading
from app.errors import InvalidRequest, UnsupportedParameter
from app.types import Operation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder
from retrieval.types import Context


class Quoter:
    """Reads contexts for the answers to questions. One instance serves every request."""

    def __init__(self, *, embedder: Embedder, ledger: Ledger) -> None:
        self._reader = ExtractiveReader(embedder)
        self._embedder = embedder
        self._ledger = ledger

    def located(self, question: Question, context: Context) -> Located | None:
        """The sentences that would be quoted, to point a language model at; None for other languages than English.

        Raises:
            StoreUnavailable: The ledger cannot be reached; nothing was spent.
        """
        if not context.sources or not is_english(question.text):
            return None
        reading = self._read(question, context, threshold=THRESHOLD, call=CallNumber.FIND_SENTENCES)
        quotes = sorted(reading.quotes, key=lambda quote: -quote.score)
        spans = tuple(AnswerSpan(quote.source, quote.span, quote.text, quote.score) for quote in quotes)
        return Located(spans, reading.threshold, reading.tokens, settles=False)

    def check(self, question: Question) -> None:
        """See that quoting can answer it, before anything is spent.

        Raises:
            InvalidRequest: It wants an answer without sources, or a JSON document that quotes cannot fill.
            UnsupportedParameter: It wants log probabilities.
        """
        if question.on_no_evidence == "answer":
            raise InvalidRequest(
                "on_no_evidence: this server has no language model and answers from documents alone; use refuse.",
                param="on_no_evidence",
            )
        if question.sampling.logprobs is not None:
            raise UnsupportedParameter(
                "logprobs: this server has no language model, and what is quoted has no probabilities.",
                param="logprobs",
            )
        if question.json_schema not in {None, ANSWER_SCHEMA, ANY_OBJECT}:
            raise InvalidRequest(
                "This server has no language model and cannot fill a JSON schema; leave it out to get the answer "
                "and the numbers of its sources.",
                param="json_schema" if question.endpoint == "ask" else "response_format",
            )

    def read(self, question: Question, context: Context, located: Located | None) -> Reading:
        """The quotes that answer `question` from `context`: what a reader points at where one read it.

        Raises:
            StoreUnavailable: The ledger cannot be reached; nothing was spent.
        """
        return self._quotes(question, context, located, call=CallNumber.ANSWER)

    def read_again(self, question: Question, context: Context, located: Located | None) -> Reading:
        """The same where a model has answered, whose call is on the bill beside this one.

        Raises:
            BudgetExceeded: Nothing is left for it.
            StoreUnavailable: The ledger cannot be reached; nothing was spent.
        """
        return self._quotes(question, context, located, call=CallNumber.QUOTE_AFTER_ANSWER)

    def _quotes(self, question: Question, context: Context, located: Located | None, *, call: CallNumber) -> Reading:
        if located is not None:
            reading = self._reader.pointed(context, located)
            # What is pointed at may stand in a heading, which is not quoted.
            if reading.quotes or located.silent:
                return reading
        asked = question.abstention_threshold
        threshold = THRESHOLD if asked is None else 1 - asked
        return self._read(question, context, threshold=threshold, call=call)

    def _read(self, question: Question, context: Context, *, threshold: float, call: CallNumber) -> Reading:
        candidates = self._reader.candidates(question.text, context)
        if not candidates.sentences:
            return Reading((), score=0.0, threshold=threshold, tokens=0)
        info = self._embedder.info
        reservation = question.reservation(
            call=call,
            operation=Operation.EMBED_QUERY,
            model=info.model,
            tokenizer_revision=info.revision,
            input_tokens=candidates.tokens,
        )
        with self._ledger.metered(reservation) as metered:
            reading = self._reader.read(candidates, threshold=threshold)
            metered.input_tokens = reading.tokens
        return reading
