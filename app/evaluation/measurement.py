"""Asks one question set of the application and writes down a value per question and measure."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from app.answering import prepare
from app.evaluation.answer_metrics import answer_scores
from app.evaluation.context_metrics import context_scores
from app.evaluation.dataset import sample
from app.evaluation.evidence import locate
from app.evaluation.record import Example, Passage
from app.evaluation.retrieval_metrics import finds_span, ranked_documents, ranking_scores
from app.evaluation.scratch import PRINCIPAL, Ingested, lead
from app.evaluation.types import GoldSpan, Options, QuestionSet, SetQuestion
from app.identifiers import new_id
from app.question import Question
from app.state import Models, State
from generation.errors import ContextLengthExceeded
from retrieval.compress import compress
from retrieval.types import Context, Hit, Scope, SearchMode

Values: TypeAlias = dict[str, dict[str, float]]
OnProgress: TypeAlias = Callable[[str, int, int], None]

_EXAMPLES = 8  # of each kind
_SHOWN = 3  # documents found, in an example
_SHOWN_CHARS = 400
_LEAST_DEPTH = 50  # chunks searched to rank documents: several of one document are one document


@dataclass(slots=True)
class Measured:
    """Values by key (`measures.measures_of`) and question, examples of what went wrong, remarks."""

    values: Values = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put(self, key: str, question: str, value: float) -> None:
        """Write one value down."""
        self.values.setdefault(key, {})[question] = value


class Measurement:
    """One question set against the application it was ingested into."""

    def __init__(
        self,
        state: State,
        question_set: QuestionSet,
        ingested: Ingested,
        options: Options,
        *,
        on_progress: OnProgress,
    ) -> None:
        assert state.models is not None, "an application that only keeps books answers nothing"
        self._models: Models = state.models
        self._state = state
        self._set = question_set
        self._ingested = ingested
        self._options = options
        self._on_progress = on_progress
        self._external_ids = {ours: theirs for theirs, ours in ingested.document_ids.items()}
        self._measured = Measured()
        self._spans: dict[str, tuple[GoldSpan, ...]] = {}

    def run(self) -> Measured:
        """Retrieval and context on the judged questions, answers too when asked for."""
        judged = self._sample(
            self._options.questions,
            lambda question: not question.unanswerable and bool(self._set.relevant(question.id)),
        )
        asked = (
            self._sample(
                self._options.answer_questions, lambda question: question.unanswerable or bool(question.answers)
            )
            if self._options.answers
            else []
        )
        self._spans = self._located({question.id for question in [*judged, *asked]})
        if judged:
            self._retrieve(judged)
        if asked:
            asyncio.run(self._answer(asked))
        return self._measured

    def _sample(self, limit: int, wanted: Callable[[SetQuestion], bool]) -> list[SetQuestion]:
        return sample(self._set, limit=limit, seed=self._options.seed, wanted=wanted)

    def _located(self, questions: set[str]) -> dict[str, tuple[GoldSpan, ...]]:
        """The questions' gold spans in the canonical texts; those that are not there are left out and counted."""
        texts: dict[str, str] = {}
        located: dict[str, tuple[GoldSpan, ...]] = {}
        lost = total = 0
        for question in sorted(questions & self._set.spans.keys()):
            found = []
            for span in self._set.spans[question]:
                total += 1
                ours = self._ingested.document_ids.get(span.document_id)
                if ours is not None and span.document_id not in texts:
                    texts[span.document_id] = self._state.contents.text(ours, tenant_id=PRINCIPAL.tenant_id)
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
        """Search once as the application does and compress that; then rank deeper, in every mode."""
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
        self._worst_rankings(questions, rankings[main], self._measured.values[f"retrieval/{main}/ndcg@10"])

    def _search(self, question: SetQuestion, mode: SearchMode, *, top_k: int) -> tuple[Hit, ...]:
        return self._models.answerer.search(self._question(question, mode=mode, top_k=top_k)).hits

    def _question(self, question: SetQuestion, *, mode: SearchMode, top_k: int) -> Question:
        return Question(
            request_id=new_id("req"),
            endpoint="evaluation",
            principal=PRINCIPAL,
            text=question.text,
            scope=Scope(tenant_id=PRINCIPAL.tenant_id, collection_ids=(self._ingested.collection_id,)),
            top_k=top_k,
            mode=mode,
            max_context_tokens=self._options.context_tokens,
            max_output_tokens=self._options.output_tokens,
        )

    def _compress(self, question: SetQuestion, hits: Sequence[Hit]) -> None:
        """Compress to shares of the hits' own tokens, and see what is left of the evidence."""
        retrieved = sum(self._models.tokenizer.count(hit.chunk.text) for hit in hits)
        for share in self._options.budgets:
            scores = context_scores(
                hits,
                self._context(question, hits, budget=retrieved * share // 100),
                answers=question.answers,
                spans=self._spans.get(question.id, ()),
                relevant=self._set.relevant(question.id),
            )
            for name, score in scores.items():
                self._measured.put(f"context/{share}/{name}", question.id, score)

    def _context(self, question: SetQuestion, hits: Sequence[Hit], *, budget: int) -> Context:
        """What the application would let the generator read."""
        return compress(hits, query=question.text, budget=budget, count_tokens=self._models.tokenizer.count)

    async def _answer(self, questions: Sequence[SetQuestion]) -> None:
        """One question after the other, greedily, so that latencies are those of a lone asker."""
        answerer = self._models.answerer
        said: dict[str, str] = {}
        too_long = failed = 0
        for done, question in enumerate(questions):
            self._on_progress("answering", done, len(questions))
            asked = self._question(question, mode=self._options.modes[0], top_k=self._options.context_top_k)
            try:
                answer = await answerer.answer(await prepare(answerer, asked))
            except ContextLengthExceeded:
                too_long += 1
                continue
            if answer.error is not None:
                failed += 1
                continue
            said[question.id] = answer.text
            scores = answer_scores(
                answer,
                question,
                relevant=self._set.relevant(question.id),
                spans=self._spans.get(question.id, ()),
                external_ids=self._external_ids,
            )
            for name, score in scores.items():
                self._measured.put(f"answers/{name}", question.id, score)
        self._on_progress("answering", len(questions), len(questions))
        for count, what in ((too_long, "did not fit the context window"), (failed, "failed while being answered")):
            if count:
                self._measured.notes.append(f"{count} questions {what}; they have no answer scores.")
        self._worst_answers(questions, said)

    def _worst_rankings(
        self, questions: Sequence[SetQuestion], rankings: dict[str, list[str]], scores: dict[str, float]
    ) -> None:
        worst = sorted((found for found in questions if scores[found.id] < 1), key=lambda found: scores[found.id])
        for question in worst[:_EXAMPLES]:
            example = self._example("retrieval", question, scores[question.id], found=rankings[question.id])
            self._measured.examples.append(example)

    def _worst_answers(self, questions: Sequence[SetQuestion], said: dict[str, str]) -> None:
        scores = self._measured.values.get("answers/f1", {})
        asked = [question for question in questions if scores.get(question.id, 1.0) < 1]
        for question in sorted(asked, key=lambda question: scores[question.id])[:_EXAMPLES]:
            example = self._example("answer", question, scores[question.id], found=(), answer=said[question.id])
            self._measured.examples.append(example)

    def _example(
        self, kind: str, question: SetQuestion, score: float, *, found: Sequence[str], answer: str | None = None
    ) -> Example:
        gold = self._set.relevant(question.id)
        return Example.model_validate(
            {
                "kind": kind,
                "id": question.id,
                "question": _shortened(question.text),
                "score": score,
                "gold": [self._passage(document, gold=True) for document in sorted(gold)[:_SHOWN]],
                "found": [self._passage(document, gold=document in gold) for document in found[:_SHOWN]],
                "answers": [_shortened(text) for text in question.answers[:_SHOWN]],
                "answer": None if answer is None else _shortened(answer),
            }
        )

    def _passage(self, document_id: str, *, gold: bool) -> Passage:
        document = self._set.documents[document_id]
        return Passage(id=document_id, title=_shortened(document.title), text=_shortened(document.text), gold=gold)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
