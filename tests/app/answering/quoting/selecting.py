"""Selects quotes with a question's own vector, for tests."""

from functools import partial
from typing import Any

from app.answering.quoting.passage_reader import PassageReader
from app.answering.states.reading import Selection
from retrieval.ports import CandidateJudge, Embedder, SpanReader
from retrieval.types import Context
from tests.retrieval.fakes import HashingEmbedder


def selected(
    question: str,
    context: Context,
    reader: SpanReader | None = None,
    *,
    embedder: Embedder | None = None,
    judge: CandidateJudge | None = None,
    **options: Any,
) -> Selection:
    """The selection; unless told otherwise whatever is likeliest is an answer."""
    embedder = embedder or HashingEmbedder()
    return PassageReader(embedder=embedder, reader=reader, judge=judge).select(
        question,
        context,
        question_vector=partial(embedder.embed_query, question),
        **{"answered": 0, "nearest": 0, **options},
    )
