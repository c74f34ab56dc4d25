"""A question on its way to its answer: what was found, what it costs, and how it ended."""

import time
from dataclasses import dataclass, field, replace

from app.answering.abstention import after_generation, without_generation
from app.answering.answer import AbstentionReport, Answer, Budget, SourceReport, TokenUsage
from app.answering.calls import Settler
from app.answering.citation import Citation
from app.answering.footnote_writer import FootnoteWriter
from app.answering.formats import ANSWER_SCHEMA, json_answer
from app.answering.locator import Located
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.answering.quoting.rendering import quotation
from app.answering.quoting.selection import Selection
from app.answering.verification.metered_models import MeteredModels
from app.errors import DeadlinePassed
from app.types import Components
from generation.ports import Stream
from generation.types import Completion, FinishReason
from ingestion.types import Page
from retrieval.types import Context, Span


@dataclass(slots=True)
class Prepared:
    """A question that was accepted, and the answer it becomes.

    `stream` is None when nothing is generated: no evidence, a dry run, or an answer by quotes, which are in
    `selection`. Quotes that follow a model's answer are in `selection` too.
    """

    question: Question
    context: Context
    prompt: Prompt
    report: SourceReport
    budget: Budget
    embedding_tokens: int
    retrieve_ms: float
    started: float
    rerank_tokens: int = 0
    rerank_ms: float = 0.0
    summary_tokens: int = 0
    rewrite_tokens: int = 0
    pages: dict[tuple[str, int], tuple[Page, ...]] = field(default_factory=dict)
    stream: Stream | None = None
    settler: Settler | None = None
    selection: Selection | None = None
    verification: MeteredModels | None = None
    evidence: AbstentionReport = field(default_factory=AbstentionReport)
    located: Located | None = None
    abstention_threshold: float | None = None

    @property
    def generates(self) -> bool:
        """Whether the engine was asked."""
        return self.stream is not None

    @property
    def quotes(self) -> bool:
        """Whether the answer is there already, quoted without a language model."""
        return self.selection is not None and bool(self.selection.quotes)

    def close(self) -> None:
        """The reader is gone; generation stops, as the client's abort unless it is our deadline that passed."""
        if self.stream is not None and self.settler is not None:
            if not self.question.late:
                self.settler.client_left()
            self.stream.close()

    def server_stops(self) -> None:
        """What ends it from here on is not its reader."""
        if self.settler is not None:
            self.settler.server_stops()

    def again(self, choice: int) -> "Prepared":
        """The same sources for another answer, not handed to the engine yet; what finding them cost is the first's."""
        return replace(
            self,
            question=self.question.again(choice),
            embedding_tokens=0,
            rerank_tokens=0,
            summary_tokens=0,
            rewrite_tokens=0,
            stream=None,
            settler=None,
            verification=None,
            selection=replace(self.selection, tokens=0) if self.selection is not None else None,
            located=replace(self.located, tokens=0) if self.located is not None else None,
        )

    def ungenerated(self, *, model: str) -> Answer:
        """The answer when the engine was not asked: a dry run, no evidence, or what was quoted."""
        question = self.question
        components = self.prompt.components if question.dry_run else Components()
        verdict = without_generation(
            question,
            evidence=self.evidence,
            context=self.context,
            located=self.located,
            selection=self.selection,
        )
        citations: tuple[Citation, ...] = ()
        text = json_answer(verdict.text) if verdict.text and question.json_schema == ANSWER_SCHEMA else verdict.text
        if self.selection is not None and self.selection.quotes:
            text, citations = quotation(self.selection.quotes, form=question.format, pages=self.pages)
        return Answer(
            id=self.question.request_id,
            model=model,
            answered=bool(citations),
            reason=verdict.reason,
            text=text,
            finish_reason="stop",
            citations=citations,
            uncited=(),
            sources=replace(self.report, cited=tuple(dict.fromkeys(citation.chunk_id for citation in citations))),
            usage=self._usage(components, completion=None),
            budget=self.budget,
            timings_ms=self._timings(None),
            abstention=verdict.report,
            quoted=(Span(0, len(text)),) if citations and self.question.format != "json" else (),
        )

    def generated(self, writer: FootnoteWriter, completion: Completion, *, model: str) -> Answer:
        """The answer from what was written and how generation ended."""
        error = str(DeadlinePassed()) if completion.finish_reason is FinishReason.DEADLINE else completion.error
        verdict = after_generation(
            writer,
            completion,
            context=self.context,
            located=self.located,
            threshold=self.abstention_threshold,
            failed=error is not None,
        )
        report = replace(self.report, cited=tuple(dict.fromkeys(c.chunk_id for c in writer.citations)))
        return Answer(
            id=self.question.request_id,
            model=model,
            answered=verdict.reason is None and error is None,
            reason="error" if error else verdict.reason,
            text=writer.answer,
            finish_reason=completion.finish_reason.value,
            citations=tuple(writer.citations),
            uncited=() if verdict.reason else tuple(writer.uncited),
            quoted=tuple(writer.quoted),
            sources=report,
            usage=self._usage(
                self.prompt.components if completion.prompt_tokens else Components(),  # as the ledger's row has it
                completion=completion,
            ),
            budget=self.budget,
            timings_ms=self._timings(completion),
            error=error,
            logprobs=completion.logprobs,
            abstention=verdict.report,
        )

    def _usage(self, components: Components, *, completion: Completion | None) -> TokenUsage:
        return TokenUsage(
            components=components,
            completion_tokens=completion.generated_tokens if completion else 0,
            cached_tokens=completion.cached_tokens if completion else 0,
            by_document={share.document_id: share.tokens for share in self.prompt.shares(self.context)}
            if components.total
            else {},
            embedding_tokens=self.embedding_tokens,
            rerank_tokens=self.rerank_tokens,
            summary_tokens=self.summary_tokens,
            rewrite_tokens=self.rewrite_tokens,
            verify_tokens=self.verification.tokens if self.verification is not None else 0,
            extract_tokens=self.selection.tokens if self.selection is not None else 0,
            locate_tokens=self.located.tokens if self.located is not None else 0,
        )

    def _timings(self, completion: Completion | None) -> dict[str, float | None]:
        total = (time.perf_counter() - self.started) * 1000
        first = None
        if completion is not None and completion.timings.first_token_ms is not None:
            first = total - completion.timings.total_ms + completion.timings.first_token_ms
        return {
            "queue": round(completion.timings.queue_ms, 1) if completion else 0.0,
            "retrieve": round(self.retrieve_ms, 1),
            "rerank": round(self.rerank_ms, 1),
            "first_token": round(first, 1) if first is not None else None,
            "total": round(total, 1),
        }
