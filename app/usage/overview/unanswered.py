"""Topics that the documents did not answer: unsure and refused questions by their words, with the nearest passages."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from app.db.answer_citations import AnswerResult
from app.db.lexical import search_text
from app.db.tables.documents import chunk, conversation_turn, document_version
from app.db.tables.ledger import answer_outcome
from app.usage.overview.overview import OverviewQuery, end_of
from app.usage.overview.topics import Topic, topics
from app.usage.rollups.questions import OUTCOMES
from retrieval.types import Scope

MOST_TOPICS = 100
"""The maximum number of topics on the list."""

MOST_READ = 2000
"""Questions that are read, the newest."""

SEARCH_SECONDS = 4.0
"""Seconds of searching for nearest passages; the remaining topics have none."""

UNANSWERED = (AnswerResult.UNSURE, AnswerResult.REFUSED)

_MICRO = 1_000_000
_EXAMPLES = 3
_NEAREST = 3
_HITS = 8  # passages found, which may be of fewer documents
_CHARACTERS = 500  # of an example

_outcome, _turn = answer_outcome.c, conversation_turn.c


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredQuery(OverviewQuery):
    """A request for topics of a range. `results` are the outcomes that count: unsure, refused, or both."""

    results: tuple[AnswerResult, ...] = UNANSWERED
    limit: int = 20


@dataclass(slots=True)
class _Kept:
    """Questions whose text is kept, newest first."""

    rows: Sequence[Any] = field(default_factory=list)
    questions: int = 0
    without_text: int = 0


def unanswered_topics(
    connection: sa.Connection,
    query: UnansweredQuery,
    *,
    as_of: int,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, object]:
    """The largest topics of the range, as a body of the API.

    Only the text of questions in a conversation is kept; the others are counted. The nearest passages are found by
    words, without a model, and need not answer. Call it inside one read transaction.

    Raises:
        InvalidRequest: The range is not valid; `param` names it.
    """
    end = end_of(query, as_of)
    kept = _kept(connection, query, end)
    found = topics([row.standalone or row.question for row in kept.rows])
    until = clock() + SEARCH_SECONDS
    data = []
    for topic in found[: query.limit]:
        nearest = _nearest(connection, topic, kept.rows, query.tenant_id) if clock() < until else None
        data.append(_topic(topic, kept.rows, nearest))
    return {
        "object": "list",
        "data": data,
        "num_questions": kept.questions,
        "num_without_text": kept.without_text,
        "num_not_read": kept.questions - kept.without_text - len(kept.rows),
        "num_topics": len(found),
        "start_time": query.start,
        "end_time": end,
        "as_of": as_of,
    }


def _kept(connection: sa.Connection, query: UnansweredQuery, end: int) -> _Kept:
    """The newest questions of the range that count, and how many there are."""
    rows = answer_outcome.outerjoin(conversation_turn, _turn.request_id == _outcome.request_id)
    counts = (
        OUTCOMES.tenant_id == query.tenant_id,
        _outcome.ended_at >= query.start * _MICRO,
        _outcome.ended_at < end * _MICRO,
        _outcome.result.in_(query.results),
    )
    sums = sa.select(sa.func.count(), sa.func.count(_turn.request_id)).select_from(rows).where(*counts)
    questions, with_text = connection.execute(sums).one()
    newest = (
        sa.select(
            _outcome.request_id,
            _outcome.result,
            _outcome.ended_at,
            _turn.conversation_id,
            _turn.question,
            _turn.standalone,
        )
        .select_from(rows)
        .where(*counts, _turn.request_id.is_not(None))
        .order_by(_outcome.ended_at.desc(), _outcome.request_id.desc())
        .limit(MOST_READ)
    )
    return _Kept(connection.execute(newest).all(), questions, questions - with_text)


def _topic(topic: Topic, rows: Sequence[Any], nearest: list[dict[str, object]] | None) -> dict[str, object]:
    members = [rows[place] for place in topic.members]
    counts = {f"num_{result.value}": sum(1 for row in members if row.result == result) for result in UNANSWERED}
    different = {" ".join(row.question.split()).casefold(): row for row in reversed(members)}
    examples = sorted(different.values(), key=lambda row: (-row.ended_at, row.request_id))[:_EXAMPLES]
    return {
        "object": "overview.unanswered_topic",
        "words": list(topic.words),
        "num_questions": len(members),
        **counts,
        "last_asked_at": members[0].ended_at // _MICRO,
        "examples": [
            {
                "question": row.question[:_CHARACTERS],
                "result": row.result,
                "conversation_id": row.conversation_id,
                "request_id": row.request_id,
                "asked_at": row.ended_at // _MICRO,
            }
            for row in examples
        ],
        "nearest": nearest,
    }


def _nearest(connection: sa.Connection, topic: Topic, rows: Sequence[Any], tenant_id: str) -> list[dict[str, object]]:
    """The nearest passage of each of the nearest documents: its document and heading."""
    newest = rows[topic.members[0]]
    asked = " ".join((newest.standalone or newest.question)[:_CHARACTERS].split())
    hits = search_text(connection, asked, scope=Scope(tenant_id=tenant_id), k=_HITS)
    places = {key: place for place, (key, _) in enumerate(hits)}
    query = (
        sa.select(chunk.c.key, chunk.c.document_id, chunk.c.heading, chunk.c.page_start, document_version.c.filename)
        .join(
            document_version,
            sa.and_(
                document_version.c.document_id == chunk.c.document_id, document_version.c.version == chunk.c.version
            ),
        )
        .where(chunk.c.key.in_([*places]))
    )
    found: dict[str, dict[str, object]] = {}
    for row in sorted(connection.execute(query), key=lambda row: places[row.key]):
        found.setdefault(
            row.document_id,
            {
                "document_id": row.document_id,
                "name": row.filename,
                "heading": row.heading,
                "page": row.page_start,
            },
        )
    return [*found.values()][:_NEAREST]
