"""Measures one question set: a value for each question and measure."""

import time
from collections.abc import Sequence

from app.evaluation.answer_measurement import AnswerMeasurement, asked
from app.evaluation.dataset import sample
from app.evaluation.examples import worst_rankings
from app.evaluation.floor import Floor
from app.evaluation.measures import Measured, OnProgress
from app.evaluation.retrieval_metrics import context_scores, finds_span, locate, ranked_documents, ranking_scores
from app.evaluation.scratch import PRINCIPAL, Ingested, lead
from app.evaluation.types import GoldSpan, Options, QuestionSet, SetQuestion
from app.server.serving import Models
from app.server.state import State
from retrieval.compress import compress
from retrieval.types import Context, Hit, SearchMode

_LEAST_DEPTH = 50  # chunks searched to rank documents: several of one document are one document


class Measurement:
    """One question set against the application it was ingested into."""

    def __init__(
        self,
        state: State,
        question_set: QuestionSet,
        ingested: Ingested,
        options: Options,
        *,
        floor: Floor | None = None,
        on_progress: OnProgress,
    ) -> None:
        """`floor` is the baseline of the answers."""
        assert state.serving.models is not None, "an application that only keeps books answers nothing"
        self._models: Models = state.serving.models
        self._state = state
        self._set = question_set
        self._ingested = ingested
        self._options = options
        self._floor = floor
        self._on_progress = on_progress
        self._measured = Measured()
        self._spans: dict[str, tuple[GoldSpan, ...]] = {}

    def run(self) -> Measured:
        """Measures retrieval and context on the judged questions, and answers where requested.

        Raises:
            SetupError: No question can be asked of as few documents as the options say.
        """
        judged = [] if self._options.answers_only else self._judged()
        answers = AnswerMeasurement(
            self._state,
            self._set,
            self._ingested,
            self._options,
            floor=self._floor,
            on_progress=self._on_progress,
        )
        questions = answers.questions() if self._options.answers else []
        self._spans = self._located({question.id for question in [*judged, *questions]})
        if judged:
            self._retrieve(judged)
        if questions:
            answers.measure(questions, self._spans, self._measured)
        return self._measured

    def _judged(self) -> list[SetQuestion]:
        return sample(
            self._set,
            limit=self._options.questions,
            seed=self._options.seed,
            wanted=lambda question: not question.unanswerable and bool(self._set.relevant(question.id)),
        )

    def _located(self, questions: set[str]) -> dict[str, tuple[GoldSpan, ...]]:
        """Locates the gold spans in the canonical texts; missing spans are left out and counted."""
        texts: dict[str, str] = {}
        located: dict[str, tuple[GoldSpan, ...]] = {}
        lost = total = 0
        for question in sorted(questions & self._set.spans.keys()):
            found = []
            for span in self._set.spans[question]:
                total += 1
                ours = self._ingested.document_ids.get(span.document_id)
                if ours is not None and span.document_id not in texts:
                    texts[span.document_id] = self._state.corpus.contents.text(ours, tenant_id=PRINCIPAL.tenant_id)
                text = texts.get(span.document_id, "")
                place = locate(span, text, lead=len(lead(self._set.documents[span.document_id])))
                if place is None:
                    lost += 1
                else:
                    found.append(place)
            if found:
                located[question] = tuple(found)
        if lost:
            self._measured.notes.append(f"{lost} of {total} gold spans are not in the canonical texts.")
        return located

    def _retrieve(self, questions: Sequence[SetQuestion]) -> None:
        """Searches as the application does and compresses the hits; then ranks deeper in every search mode."""
        options = self._options
        main = options.modes[0]
        depth = max(_LEAST_DEPTH, 2 * options.top_k)
        rankings: dict[SearchMode, dict[str, list[str]]] = {mode: {} for mode in options.modes}
        for done, question in enumerate(questions):
            self._on_progress("searching", done, len(questions))
            started = time.perf_counter()
            hits = self._search(question, main, top_k=options.context_top_k)
            self._measured.put(f"retrieval/{main}/latency", question.id, (time.perf_counter() - started) * 1000)
            self._compress(question, hits)
            for mode in options.modes:
                found = self._search(question, mode, top_k=depth)
                rankings[mode][question.id] = ranked_documents(found)[: options.top_k]
                if spans := self._spans.get(question.id, ()):
                    best = hits if mode is main else found[: options.context_top_k]
                    self._measured.put(f"retrieval/{mode}/span", question.id, finds_span(best, spans))
        self._on_progress("searching", len(questions), len(questions))
        for mode, ranking in rankings.items():
            for name, scores in ranking_scores(self._set.judgments, ranking).items():
                self._measured.values[f"retrieval/{mode}/{name}"] = scores
        waits = f"retrieval/{main}/latency"
        self._measured.values[waits] = self._measured.values.pop(waits)  # shown last
        self._measured.examples += worst_rankings(
            self._set,
            questions,
            rankings=rankings[main],
            scores=self._measured.values[f"retrieval/{main}/ndcg@10"],
        )

    def _search(self, question: SetQuestion, mode: SearchMode, *, top_k: int) -> tuple[Hit, ...]:
        found = asked(question, self._options, collection_id=self._ingested.collection_id, mode=mode, top_k=top_k)
        return self._models.answerer.search(found).hits

    def _compress(self, question: SetQuestion, hits: Sequence[Hit]) -> None:
        """Compresses to shares of the hits' tokens and measures the evidence that is kept."""
        retrieved = sum(self._models.tokenizer.count(hit.chunk.text) for hit in hits)
        for share in self._options.budgets:
            scores = context_scores(
                hits,
                self._context(question, hits, budget=retrieved * share // 100),
                answers=question.answers,
                spans=self._spans.get(question.id, ()),
                relevant=self._set.relevant(question.id),
            )
            self._measured.put_all(f"context/{share}", question.id, scores)

    def _context(self, question: SetQuestion, hits: Sequence[Hit], *, budget: int) -> Context:
        """The context that the application would give the generator."""
        return compress(hits, query=question.text, budget=budget, count_tokens=self._models.tokenizer.count)
