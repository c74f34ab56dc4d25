"""A question on its way to its answer: what was found, what it costs, and how it ended."""

import time
from dataclasses import dataclass, field, replace

from app.answer import Answer, Budget, SourceReport, TokenUsage
from app.citations import FootnoteWriter
from app.errors import DeadlinePassed
from app.prompt import REFUSAL, Prompt
from app.question import Question
from app.settlement import Settler
from app.types import Components
from generation.ports import Stream
from generation.types import Completion, FinishReason
from ingestion.types import Page
from retrieval.types import Context

NO_EVIDENCE = "The documents do not hold an answer to this question."


@dataclass(slots=True)
class Prepared:
    """A question that was accepted, and the answer it becomes.

    `stream` is None when nothing is generated: no evidence, or a dry run.
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
    pages: dict[tuple[str, int], tuple[Page, ...]] = field(default_factory=dict)
    stream: Stream | None = None
    settler: Settler | None = None

    @property
    def generates(self) -> bool:
        """Whether the engine was asked."""
        return self.stream is not None

    def close(self) -> None:
        """The reader is gone; generation stops, as the client's abort unless it is our deadline that passed."""
        if self.stream is not None and self.settler is not None:
            if not self.question.late:
                self.settler.client_left()
            self.stream.close()

    def ungenerated(self, *, model: str) -> Answer:
        """The answer when the engine was not asked: a dry run, or no evidence."""
        dry = self.question.dry_run
        components = self.prompt.components if dry else Components()
        return Answer(
            id=self.question.request_id,
            model=model,
            answered=False,
            reason="dry_run" if dry else "no_evidence",
            text="" if dry else NO_EVIDENCE,
            finish_reason="stop",
            citations=(),
            uncited=(),
            sources=self.report,
            usage=self._usage(components, completion=None),
            budget=self.budget,
            timings_ms=self._timings(None),
        )

    def generated(self, writer: FootnoteWriter, completion: Completion, *, model: str) -> Answer:
        """The answer from what was written and how generation ended."""
        refused = bool(self.context.sources) and not writer.citations and _is_refusal(writer.answer)
        reason = "not_in_sources" if refused else None
        error = str(DeadlinePassed()) if completion.finish_reason is FinishReason.DEADLINE else completion.error
        report = replace(self.report, cited=tuple(dict.fromkeys(c.chunk_id for c in writer.citations)))
        return Answer(
            id=self.question.request_id,
            model=model,
            answered=not refused and error is None,
            reason="error" if error else reason,
            text=writer.answer,
            finish_reason=completion.finish_reason.value,
            citations=tuple(writer.citations),
            uncited=() if refused else tuple(writer.uncited),
            sources=report,
            usage=self._usage(
                self.prompt.components if completion.prompt_tokens else Components(),  # as the ledger's row has it
                completion=completion,
            ),
            budget=self.budget,
            timings_ms=self._timings(completion),
            error=error,
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


def _is_refusal(answer: str) -> bool:
    return answer.strip().casefold().replace("’", "'").startswith(REFUSAL.rstrip(".").casefold())
