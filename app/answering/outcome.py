"""The outcome of a prepared question, generated or not, and the answer that reports it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answering.abstention import REFUSED, Verdict, without_generation
from app.answering.answer import AbstentionReport, Answer, SourceReport
from app.answering.citation import Citation
from app.answering.formats import ANSWER_SCHEMA, json_answer
from app.answering.generating.footnote_writer import FootnoteWriter
from app.answering.generating.refusing import after_generation
from app.answering.metering.token_usage import ModelCall, Purpose, TokenUsage, called
from app.answering.prepared import Prepared
from app.answering.question import Question
from app.answering.quoting.quotes import Quote, Selection
from app.answering.quoting.rendering import Quotation, quotation, unconfirmed
from app.answering.quoting.selection import leads
from app.errors import DeadlinePassed
from app.types import Components
from generation.types import Completion, FinishReason
from retrieval.types import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a prepared question ended. `completion` is None where no model generated.

    `model` is the language model that generated, or would have.
    """

    prepared: Prepared
    model: str
    completion: Completion | None = None

    def ungenerated(self) -> Answer:
        """The answer without a model's text: a dry run, a refusal, a reply, quotes, or none as it was cancelled."""
        prepared, question = self.prepared, self.prepared.question
        verdict = without_generation(
            question,
            evidence=prepared.evidence,
            context=prepared.context,
            selection=prepared.selection,
        )
        if prepared.cancelled:
            verdict = Verdict("cancelled", AbstentionReport())
        if prepared.note and verdict.reason in REFUSED:
            verdict = replace(verdict, text=f"{verdict.text}\n\n{prepared.note}")
        if prepared.note and verdict.reason == "unsure":
            verdict = replace(verdict, text=f"{prepared.note}\n\n{verdict.text}")
        if prepared.reply is not None and not question.dry_run:
            verdict = Verdict(None, AbstentionReport(), prepared.reply)
        text = json_answer(verdict.text) if verdict.text and question.json_schema == ANSWER_SCHEMA else verdict.text
        found = Quotation(text, ())
        if prepared.quotes:
            assert prepared.selection is not None, "it has the quotes"
            found = quotation(
                prepared.selection.quotes,
                form=question.format,
                pages=prepared.pages,
                lead=_lead(question, prepared.selection),
                opening=verdict.text,
            )
            found = found if verdict.reason is None else unconfirmed(found)
        usage = self._usage(prepared.prompt.components if question.dry_run else Components())
        return Answer(
            id=question.request_id,
            model=_reported(usage.calls),
            answered=verdict.reason is None,
            reason=verdict.reason,
            text=found.text,
            finish_reason="cancelled" if prepared.cancelled else "stop",
            citations=found.citations,
            uncited=(),
            sources=self._report(found.citations),
            usage=usage,
            budget=prepared.budget,
            timings_ms=self._timings(),
            abstention=verdict.report,
            quoted=found.quoted,
            answers=None if prepared.cancelled else self._answers(),
            lead=found.lead,
        )

    def generated(self, footnotes: FootnoteWriter) -> Answer:
        """The answer that `footnotes` wrote from generated text; a refusal is followed by the note."""
        prepared, completion = self.prepared, self.completion
        assert completion is not None, "a model generated"
        error = str(DeadlinePassed()) if completion.finish_reason is FinishReason.DEADLINE else completion.error
        verdict = after_generation(
            footnotes,
            completion,
            context=prepared.context,
            selection=prepared.selection,
            threshold=prepared.abstention_threshold,
            failed=error is not None,
        )
        citations = tuple(footnotes.citations)
        answers = self._answers(citations)
        if answers is not None:
            citations = tuple(one.judged(max(answers, one.answers or 0.0)) for one in citations)
        return Answer(
            id=prepared.question.request_id,
            model=self.model,
            answered=verdict.reason is None and error is None,
            reason="error" if error else verdict.reason,
            text=footnotes.answer + ("" if error else self._note_behind(verdict)),
            finish_reason=completion.finish_reason.value,
            citations=citations,
            uncited=() if verdict.reason else tuple(footnotes.uncited),
            quoted=tuple(footnotes.quoted),
            sources=self._report(citations),
            # As the ledger's row has it: a prompt that was never read cost nothing.
            usage=self._usage(prepared.prompt.components if completion.prompt_tokens else Components()),
            budget=prepared.budget,
            timings_ms=self._timings(),
            error=error,
            logprobs=completion.logprobs,
            abstention=verdict.report,
            answers=answers,
        )

    def _note_behind(self, verdict: Verdict) -> str:
        """What follows a refusal that a model wrote in prose; "" where its log probabilities go with the text."""
        question, note = self.prepared.question, self.prepared.note
        prose = question.json_schema is None and question.sampling.logprobs is None
        return f"\n\n{note}" if note and prose and verdict.reason in REFUSED else ""

    def _answers(self, citations: Sequence[Citation] | None = None) -> float | None:
        """The probability that the question is answered: by the best quote, or by the passages that are cited."""
        selection = self.prepared.selection
        if selection is None:
            return None
        if citations is None:
            return selection.score
        return selection.answers([(one.index, Span(one.start_char, one.end_char)) for one in citations])

    def _report(self, citations: tuple[Citation, ...]) -> SourceReport:
        """The sources, with those that are cited."""
        return replace(self.prepared.report, cited=tuple(dict.fromkeys(one.chunk_id for one in citations)))

    def _usage(self, components: Components) -> TokenUsage:
        """The usage of all calls; `components` are those of the answering call's prompt, all 0 where it read none."""
        prepared = self.prepared
        return TokenUsage(
            components=components,
            by_document={share.document_id: share.tokens for share in prepared.prompt.shares(prepared.context)}
            if components.total
            else {},
            calls=(*prepared.meter.calls, *self._planned(components)),
        )

    def _planned(self, components: Components) -> tuple[ModelCall, ...]:
        """The call that a dry run did not make."""
        if self.completion is not None:
            return ()
        planned = ModelCall(purpose=Purpose.ANSWER, model=self.model, prompt_tokens=components.total, planned=True)
        return called(planned)

    def _timings(self) -> dict[str, float | None]:
        """Milliseconds by stage; `first_token` counts from the start of the preparation."""
        completion, cost = self.completion, self.prepared.cost
        total = (time.perf_counter() - cost.started) * 1000
        first = None
        if completion is not None and completion.timings.first_token_ms is not None:
            first = total - completion.timings.total_ms + completion.timings.first_token_ms
        return {
            "queue": round(completion.timings.queue_ms, 1) if completion else 0.0,
            "retrieve": round(cost.retrieve_ms, 1),
            "rerank": round(cost.rerank_ms, 1),
            "first_token": round(first, 1) if first is not None else None,
            "total": round(total, 1),
        }


def _lead(question: Question, selection: Selection) -> Quote | None:
    """The quote whose words lead the answer: a document's title, or the likeliest where a few words answer."""
    if selection.title is not None and selection.outcome == "answered":
        return selection.title
    return selection.quotes[0] if leads(question.text, selection) else None


_REPORTED = (Purpose.ANSWER, Purpose.LOCATE, Purpose.EXTRACT, Purpose.RERANK, Purpose.EMBED_QUERY, Purpose.REWRITE)


def _reported(calls: Sequence[ModelCall]) -> str:
    """The model of the first purpose of `_REPORTED` that an answer had a call for; "" for an answer without calls."""
    models = {call.purpose: call.model for call in calls}
    return next((models[purpose] for purpose in _REPORTED if purpose in models), "")
