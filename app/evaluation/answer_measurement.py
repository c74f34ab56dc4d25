"""Asks the application the questions of a set and scores its answers."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.answering.answers.answer import Answer
from app.answering.citing.citation import Citation
from app.answering.question import Question
from app.errors import SetupError
from app.evaluation.answer_metrics import (
    abstention_score,
    answer_scores,
    cost_scores,
    gate_scores,
    marker_scores,
    refusal_scores,
)
from app.evaluation.dataset import sample
from app.evaluation.examples import worst_answers
from app.evaluation.floor import Floor, said_by
from app.evaluation.measures import Measured, OnProgress
from app.evaluation.presentation import Case, cases, gold_documents, presented_documents
from app.evaluation.retrieval_metrics import ranked_documents
from app.evaluation.said import Said, said_in
from app.evaluation.scratch import PRINCIPAL, Ingested
from app.evaluation.types import GoldSpan, Options, QuestionSet, SetQuestion
from app.ids import new_id
from app.server.serving import Models
from app.server.state import State
from generation.errors import ContextLengthExceeded
from retrieval.types import Context, Scope, SearchMode


def asked(
    question: SetQuestion,
    options: Options,
    *,
    collection_id: str,
    mode: SearchMode,
    top_k: int,
    document_ids: tuple[str, ...] | None = None,
) -> Question:
    """Builds the application's question about a collection, or about some documents of it."""
    return Question(
        request_id=new_id("req"),
        endpoint="evaluation",
        principal=PRINCIPAL,
        text=question.text,
        scope=Scope(tenant_id=PRINCIPAL.tenant_id, collection_ids=(collection_id,), document_ids=document_ids),
        top_k=top_k,
        mode=mode,
        max_context_tokens=options.context_tokens,
        max_output_tokens=options.output_tokens,
        abstention_threshold=options.abstention_threshold,
        strict=options.strict,
    )


_RANKED_CHUNKS = 50  # searched for the documents presented beside the gold ones
_PRESENTED_CHUNKS = 200  # more than the presented documents have: all of their text may become the context
_NO_EVIDENCE = "no_evidence"


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of one case: the answer's scores, the baseline's scores (`floor`, if any) and presented documents."""

    answer: Answer
    scores: Mapping[str, float]
    floor: Mapping[str, float]
    documents: int


class AnswerMeasurement:
    """Measures the answers to one question set that was ingested into the application."""

    def __init__(
        self,
        state: State,
        question_set: QuestionSet,
        ingested: Ingested,
        options: Options,
        *,
        floor: Floor | None,
        on_progress: OnProgress,
    ) -> None:
        """`floor` answers every question too, from the context the model read."""
        assert state.serving.models is not None, "an application that only keeps books answers nothing"
        self._models: Models = state.serving.models
        self._state = state
        self._set = question_set
        self._ingested = ingested
        self._options = options
        self._floor = floor
        self._on_progress = on_progress
        self._external_ids = {ours: theirs for theirs, ours in ingested.document_ids.items()}
        self._spans: Mapping[str, Sequence[GoldSpan]] = {}

    def questions(self) -> list[SetQuestion]:
        """Samples the questions to ask: those with gold answers, and the unanswerable ones.

        Raises:
            SetupError: Documents are to be presented, and no question has so few gold ones.
        """
        chosen = sample(
            self._set,
            limit=self._options.answer_questions,
            seed=self._options.seed,
            wanted=lambda question: (question.unanswerable or bool(question.answers)) and self._presentable(question),
        )
        if not chosen and self._options.presented is not None:
            raise SetupError(
                f"{self._set.name}: no question can be asked of {self._options.presented} documents; --presented "
                "takes no fewer than a question's gold ones."
            )
        return chosen

    def measure(
        self, questions: Sequence[SetQuestion], spans: Mapping[str, Sequence[GoldSpan]], measured: Measured
    ) -> None:
        """Asks all questions and records the scores in the order of the questions.

        Args:
            questions: Of `questions()`.
            spans: Their gold spans, located in the canonical texts.
            measured: Gets the values, the worst answers, and remarks.
        """
        self._spans = spans
        asking = cases(questions, presented=self._options.presented)
        outcomes = asyncio.run(self._ask_all(asking))
        done = [(case, found) for case, found in zip(asking, outcomes, strict=True) if isinstance(found, _Outcome)]
        done.sort(key=lambda pair: pair[0].group or "")  # stable: a group's figures stand together
        for case, found in done:
            measured.put_all(_key("answers", case), case.question.id, found.scores)
            score = abstention_score(found.answer)
            if score is not None:
                measured.abstention.setdefault(_key("answers", case), {})[case.question.id] = score
        for case, found in done:  # after all of the model's, so that they are shown after them
            measured.put_all(_key("extractive", case), case.question.id, found.floor)
        measured.notes += [*_failures(outcomes), *self._promises(found for _, found in done)]
        self._add_examples(questions, done, measured)

    def _presentable(self, question: SetQuestion) -> bool:
        """Whether all gold documents of a case can be presented."""
        if self._options.presented is None:
            return True
        gold = gold_documents(self._set, question)
        readable = all(document in self._ingested.document_ids for document in gold)
        return readable and len(gold) <= self._options.presented and (question.unanswerable or bool(gold))

    async def _ask_all(self, asking: Sequence[Case]) -> list[_Outcome | str]:
        """Yields an outcome, or the error, for each case."""
        outcomes: list[_Outcome | str] = [""] * len(asking)
        waiting = iter(enumerate(asking))
        done = 0

        async def ask_on() -> None:
            nonlocal done
            for at, case in waiting:
                outcomes[at] = await self._ask(case)
                done += 1
                self._on_progress("answering", done, len(asking))

        self._on_progress("answering", 0, len(asking))
        await asyncio.gather(*(ask_on() for _ in range(self._options.concurrency)))
        return outcomes

    async def _ask(self, case: Case) -> _Outcome | str:
        """Asks with greedy decoding. With `concurrency` 1 latencies are those of a single user."""
        answerer = self._models.answerer
        presented = await asyncio.to_thread(self._documents, case)
        if case.group == "off-topic" and len(presented or ()) < (self._options.presented or 0):
            return "could not be asked of as many off-topic documents"
        question = asked(
            case.question,
            self._options,
            collection_id=self._ingested.collection_id,
            mode=self._options.modes[0],
            top_k=self._options.context_top_k if presented is None else _PRESENTED_CHUNKS,
            document_ids=presented,
        )
        try:
            opened = answerer.open(question)
            answer = await opened.whole()
        except ContextLengthExceeded:
            return "did not fit the context window"
        if answer.error is not None:
            return "failed while being answered"
        return await asyncio.to_thread(self._outcome, case, opened.context, answer)

    def _documents(self, case: Case) -> tuple[str, ...] | None:
        """The application's ids of the documents a case is asked about, None for the whole collection."""
        if self._options.presented is None:
            return None
        search = asked(
            case.question,
            self._options,
            collection_id=self._ingested.collection_id,
            mode=self._options.modes[0],
            top_k=_RANKED_CHUNKS,
        )
        chosen = presented_documents(
            case,
            self._set,
            count=self._options.presented,
            ranked=ranked_documents(self._models.answerer.search(search).hits)[: self._options.top_k],
            readable=self._ingested.document_ids.keys(),
            seed=self._options.seed,
        )
        return tuple(self._ingested.document_ids[document] for document in chosen)

    def _outcome(self, case: Case, context: Context, answer: Answer) -> _Outcome:
        said, sources = said_in(answer), context.sources
        scores = {
            **self._scores(case, said),
            **gate_scores(said, gated=answer.reason == _NO_EVIDENCE, holds_answer=case.holds_answer),
            **marker_scores(answer, sources=sources, slice_of=self._slice),
            **cost_scores(answer),
        }
        floor: Mapping[str, float] = {}
        if self._floor is not None:
            floor = self._scores(case, said_by(self._floor, case.question.text, context))
        documents = len({source.hit.chunk.document_id for source in sources})
        return _Outcome(answer, scores, floor, documents)

    def _scores(self, case: Case, said: Said) -> dict[str, float]:
        if not case.holds_answer:
            return refusal_scores(said)
        return answer_scores(
            said,
            case.question.answers,
            relevant=self._set.relevant(case.question.id),
            spans=self._spans.get(case.question.id, ()),
            external_ids=self._external_ids,
        )

    def _slice(self, citation: Citation) -> str:
        return self._state.corpus.contents.text(
            citation.document_id,
            tenant_id=PRINCIPAL.tenant_id,
            version=citation.version,
            start=citation.start_char,
            end=citation.end_char,
        )

    def _promises(self, outcomes: Iterable[_Outcome]) -> list[str]:
        """Counts broken invariants of an answer, and whether the requested number of documents was read."""
        found = list(outcomes)
        dangling = sum(int(outcome.scores["dangling"]) for outcome in found)
        cited = sum(len(outcome.answer.citations) for outcome in found)
        exact = sum(round(outcome.scores.get("slices", 0) * len(outcome.answer.citations)) for outcome in found)
        notes = [
            f"{dangling} dangling citations in {len(found)} answers; "
            f"{exact} of {cited} cited texts are the canonical text at their offsets."
        ]
        if self._options.presented is not None:
            wanted, read = self._options.presented, [outcome for outcome in found if outcome.documents]
            fewer = sum(outcome.documents < wanted for outcome in read)
            if fewer:
                notes.append(f"{fewer} of {len(read)} contexts held fewer than {wanted} documents.")
        if self._options.concurrency > 1:
            notes.append(
                f"{self._options.concurrency} questions were answered at a time: latencies are of a shared engine."
            )
        return notes

    def _add_examples(
        self, questions: Sequence[SetQuestion], done: Sequence[tuple[Case, _Outcome]], measured: Measured
    ) -> None:
        holding = [(case.question.id, found) for case, found in done if case.holds_answer]
        measured.examples += worst_answers(
            self._set,
            questions,
            said={question: found.answer.text for question, found in holding},
            scores={question: found.scores["f1"] for question, found in holding if "f1" in found.scores},
        )


def _key(group: str, case: Case) -> str:
    """The key prefix of a case's scores; presented documents form a group of their own."""
    if case.group is None:
        return group
    return f"{'presented' if group == 'answers' else group}/{case.group}"


def _failures(outcomes: Sequence[_Outcome | str]) -> list[str]:
    reasons = [found for found in outcomes if isinstance(found, str)]
    return [
        f"{reasons.count(reason)} questions {reason}; they have no answer scores." for reason in dict.fromkeys(reasons)
    ]
