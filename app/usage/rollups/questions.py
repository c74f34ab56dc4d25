"""Questions that ended, by bucket and group: a report counts every answer, whichever models it called."""

from collections.abc import Sequence
from itertools import pairwise

import sqlalchemy as sa

from app.db.answer_citations import ANSWERING
from app.db.tables.ledger import answer_outcome, api_request
from app.usage.rollups.spans import BucketRange
from app.usage.rollups.sums import Key, Only, SummedTable, within

RUNNING_SECONDS = 900
"""A request that was accepted this long ago and has no outcome has ended without one."""

COUNTABLE = frozenset({"project_id", "user_id", "api_key_id"})
"""The dimensions that questions can be counted by; an answer calls several models, operations and statuses."""

_MICRO = 1_000_000
_NO_SUMS: tuple[sa.ColumnElement[int], ...] = ()

_outcome, _request = answer_outcome.c, api_request.c

OUTCOMES = SummedTable(
    answer_outcome,
    at=_outcome.ended_at,
    tenant_id=_outcome.tenant_id,
    dimensions={"user_id": _outcome.user_id},
    sums=_NO_SUMS,
)
"""Questions whose outcome was recorded, at the time they ended."""

UNKNOWN = SummedTable(
    api_request.outerjoin(answer_outcome, _outcome.request_id == _request.request_id),
    at=_request.accepted_at,
    tenant_id=_request.tenant_id,
    dimensions={name: _request[name] for name in COUNTABLE},
    sums=_NO_SUMS,
    where=(_outcome.request_id.is_(None), _request.endpoint.in_(ANSWERING)),
)
"""Questions without a recorded outcome, at the time they were accepted: older ones, and those cut off by a crash."""

_BY_REQUEST = SummedTable(
    answer_outcome.outerjoin(api_request, _outcome.request_id == _request.request_id),
    at=_outcome.ended_at,
    tenant_id=_outcome.tenant_id,
    dimensions={
        "user_id": _outcome.user_id,
        # A reply that called no model has no request on the ledger.
        **{name: sa.func.coalesce(_request[name], "") for name in COUNTABLE - {"user_id"}},
    },
    sums=_NO_SUMS,
)


def ended_before(as_of: int) -> sa.ColumnElement[bool]:
    """The condition that a request without an outcome does not run any more; `as_of` is the current Unix second."""
    return _request.accepted_at < (as_of - RUNNING_SECONDS) * _MICRO


def question_counts(
    connection: sa.Connection, edges: Sequence[int], *, tenant_id: str, groups: Sequence[str], only: Only, as_of: int
) -> dict[Key, int] | None:
    """The number of questions that ended between `edges` (Unix microseconds), by bucket and `groups`.

    None where a group or filter is not `COUNTABLE`. Call it inside one read transaction.
    """
    dimensions = {*groups, *only}
    if not dimensions <= COUNTABLE:
        return None
    spans = [BucketRange(bucket, *pair) for bucket, pair in enumerate(pairwise(edges))]
    known = OUTCOMES if dimensions <= {"user_id"} else _BY_REQUEST
    found: dict[Key, int] = {}
    for source, where in ((known, ()), (UNKNOWN, (ended_before(as_of),))):
        query = (
            within(connection, source, spans, source.rows, tenant_id=tenant_id, only=only)
            .where(*where)
            .add_columns(*(source.dimensions[name].label(name) for name in groups), sa.func.count())
            .group_by(*(sa.literal_column(str(place)) for place in range(1, len(groups) + 2)))
        )
        for *key, count in connection.execute(query):
            found[tuple(key)] = found.get(tuple(key), 0) + count
    return found


def questions_of(connection: sa.Connection, *, tenant_id: str, user_id: str, since: Sequence[int]) -> list[int]:
    """The number of a user's questions that have ended since each of some moments, Unix microseconds."""
    counts = [sa.func.coalesce(sa.func.sum(sa.case((_outcome.ended_at >= at, 1), else_=0)), 0) for at in since]
    mine = sa.select(*counts).where(_outcome.tenant_id == tenant_id, _outcome.user_id == user_id)
    return [int(count) for count in connection.execute(mine).one()]
