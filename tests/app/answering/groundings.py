"""Groundings for tests, and what strategies begin from them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from app.answering.answers.answer import AbstentionReport
from app.answering.citing.citation import CONFIRMED
from app.answering.fitting import Fitting
from app.answering.languages.other_language import OtherLanguage
from app.answering.metering.meter import Meter
from app.answering.question import AnswerDefaults, Question
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.states.finished import Finished
from app.answering.states.sources import NO_SOURCES, Grounding, Retrieved, TokenBudget
from app.answering.states.strategy import Beginning, Sources, Strategy, Writing
from app.db.contents import ContentRepository
from app.types import Principal, Role
from retrieval.compress import edges_first
from retrieval.types import Context, Hit, Scope
from tests.app.answering.metered import meter_of
from tests.app.answering.pointing_reader import PointingReader
from tests.retrieval.fakes import HashingEmbedder, chunk, hit

BUDGET = TokenBudget(window=64, output=8, sources=56, overview=56, count=len, order=edges_first)
UNSCORED = AbstentionReport()
LIMITS = AnswerDefaults(max_context_tokens=900, max_output_tokens=100, min_evidence=0.0, max_waiting=8)
QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t1", "u1", "k1", Role.MEMBER),
    text="How many ships came in May?",
    scope=Scope(tenant_id="t1"),
)
TEXT = "The plant in Oslo closed on 4 May. Nobody was hurt."
SENTENCE = TEXT[:34]
SURE, NEARLY_SURE = (1 + CONFIRMED) / 2, CONFIRMED / 2


def retrieved(question: Question, found: Sequence[Hit], *, evidence: AbstentionReport = UNSCORED) -> Retrieved:
    """Hits, best first, all of them evidence. The question's vector is on no meter of a test."""
    vector = QuestionVectors(HashingEmbedder()).of(question, meter_of(question))
    return Retrieved(hits=tuple(found), found=tuple(found), evidence=evidence, vector=vector)


def grounding_of(
    question: Question,
    context: Context = NO_SOURCES,
    *,
    evidence: AbstentionReport = UNSCORED,
    note: OtherLanguage | None = None,
) -> Grounding:
    """The grounding of an answer from the sources of `context`."""
    found = retrieved(question, [source.hit for source in context.sources], evidence=evidence)
    return Grounding(question=question, retrieved=found, budget=BUDGET, context=context, note=note)


def ship_reader() -> PassageReader:
    """Selects what says "forty ships"."""
    return PassageReader(embedder=HashingEmbedder(), reader=PointingReader("forty ships"))


def fitted(strategy: Strategy, question: Question, count: int, meter: Meter) -> Grounding:
    """The documents about ships that fit, without pages."""
    fitting = Fitting(cast(ContentRepository, None))
    found = fitting.fit(question, retrieved(question, ships(count, 2)), strategy.budget(question), meter)
    return replace(found, pages=dict)


def begun(beginning: Beginning) -> tuple[list[Sources], Finished | Writing]:
    """What a strategy yields from now on, and the answer that it begins."""
    yielded: list[Sources] = []
    while True:
        try:
            yielded.append(next(beginning))
        except StopIteration as ended:
            answer: Finished | Writing = ended.value
            return yielded, answer


def ships(count: int, sentences: int) -> tuple[Hit, ...]:
    """Hits of `count` documents, `doc_1` the best, each with `sentences` sentences about forty ships in May."""
    told = " ".join(f"In May of year {year} forty ships came to harbour {year}." for year in range(sentences))
    return tuple(
        hit(chunk(rank, f"{told} It is page {rank}.", document_id=f"doc_{rank}"), rank=rank)
        for rank in range(1, count + 1)
    )
