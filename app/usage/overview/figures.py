"""The figures of the overview by bucket: questions by their outcome, feedback, seconds, people, tokens and cost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.answer_citations import AnswerResult
from app.db.tables.answers import feedback
from app.db.tables.ledger import answer_outcome
from app.types import Operation
from app.usage.rollups.questions import OUTCOMES, UNKNOWN, ended_before
from app.usage.rollups.spans import BucketRange
from app.usage.rollups.sums import NOTHING, SummedTable, Totals, totals, within

_MICRO = 1_000_000
_ENDED_WELL = (AnswerResult.ANSWERED, AnswerResult.UNSURE, AnswerResult.REFUSED)
_NO_SUMS: tuple[sa.ColumnElement[int], ...] = ()

_outcome, _feedback = answer_outcome.c, feedback.c

_FEEDBACK = SummedTable(
    feedback,
    at=sa.cast(_feedback.created_at * _MICRO, sa.BigInteger),
    tenant_id=_feedback.tenant_id,
    dimensions={},
    sums=_NO_SUMS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one bucket. `results` counts questions by outcome; times are microseconds.

    `confirmable` are the answers that could cite something, `confirmed` those with a verified citation. `median_us` and
    `p95_us` (nearest rank) are of answers and refusals; None where there are none. `people` asked at least once.
    `totals` are of every model call, `asking` of those for questions and searches.
    """

    results: dict[AnswerResult, int]
    unknown: int
    confirmable: int
    confirmed: int
    good: int
    bad: int
    median_us: int | None
    p95_us: int | None
    people: int
    totals: Totals
    asking: Totals

    @property
    def questions(self) -> int:
        """All questions, however they ended."""
        return sum(self.results.values()) + self.unknown


def figures(
    connection: sa.Connection, edges: Sequence[int], *, tenant_id: str, zone: ZoneInfo, as_of: int
) -> list[Figures]:
    """The figures of each bucket `[edges[n], edges[n + 1])`, Unix microseconds.

    `zone` is the reporting zone of the rollups, `as_of` the current Unix second. Call it inside one read transaction.
    """
    spans = [BucketRange(bucket, *pair) for bucket, pair in enumerate(pairwise(edges))]
    results, confirmable, confirmed, users = _results(connection, spans, tenant_id)
    unknown = _unknown(connection, spans, tenant_id, as_of, users)
    good, bad = _said(connection, spans, tenant_id)
    seconds = _seconds(connection, spans, tenant_id)
    every, asking = [NOTHING] * len(spans), [NOTHING] * len(spans)
    sums = totals(connection, edges, tenant_id=tenant_id, zone=zone, groups=["operation"])
    for (bucket, operation), some in sums.items():
        every[int(bucket)] = every[int(bucket)].plus(some)
        if operation != Operation.EMBED_DOC:
            asking[int(bucket)] = asking[int(bucket)].plus(some)
    return [
        Figures(
            results={result: results.get((bucket, result), 0) for result in AnswerResult},
            unknown=unknown.get(bucket, 0),
            confirmable=confirmable.get(bucket, 0),
            confirmed=confirmed.get(bucket, 0),
            good=good.get(bucket, 0),
            bad=bad.get(bucket, 0),
            median_us=seconds.get(bucket, (None, None))[0],
            p95_us=seconds.get(bucket, (None, None))[1],
            people=len(users.get(bucket, ())),
            totals=every[bucket],
            asking=asking[bucket],
        )
        for bucket in range(len(spans))
    ]


def _results(
    connection: sa.Connection, spans: Sequence[BucketRange], tenant_id: str
) -> tuple[dict[tuple[int, AnswerResult], int], Counter[int], Counter[int], dict[int, set[str]]]:
    """Questions by bucket and outcome; by bucket the answers that could cite, those confirmed, and who asked."""
    query = (
        within(connection, OUTCOMES, spans, OUTCOMES.rows, tenant_id=tenant_id, only={})
        .add_columns(
            _outcome.result,
            _outcome.user_id,
            sa.func.count(),
            sa.func.count(_outcome.confirmed),
            sa.func.sum(sa.case((_outcome.confirmed.is_(True), 1), else_=0)),
        )
        .group_by(*(sa.literal_column(str(place)) for place in (1, 2, 3)))
    )
    results: dict[tuple[int, AnswerResult], int] = {}
    confirmable, confirmed, users = Counter[int](), Counter[int](), dict[int, set[str]]()
    for bucket, result, user_id, count, could, are in connection.execute(query):
        key = bucket, AnswerResult(result)
        results[key] = results.get(key, 0) + count
        confirmable[bucket] += could
        confirmed[bucket] += int(are)
        users.setdefault(bucket, set()).add(user_id)
    return results, confirmable, confirmed, users


def _unknown(
    connection: sa.Connection, spans: Sequence[BucketRange], tenant_id: str, as_of: int, users: dict[int, set[str]]
) -> Counter[int]:
    """Questions without an outcome by bucket; their users are added to `users`."""
    query = (
        within(connection, UNKNOWN, spans, UNKNOWN.rows, tenant_id=tenant_id, only={})
        .where(ended_before(as_of))
        .add_columns(UNKNOWN.dimensions["user_id"], sa.func.count())
        .group_by(sa.literal_column("1"), sa.literal_column("2"))
    )
    found = Counter[int]()
    for bucket, user_id, count in connection.execute(query):
        found[bucket] += count
        users.setdefault(bucket, set()).add(user_id)
    return found


def _said(
    connection: sa.Connection, spans: Sequence[BucketRange], tenant_id: str
) -> tuple[dict[int, int], dict[int, int]]:
    """Good and bad feedback by bucket, at the time it was first given."""
    query = (
        within(connection, _FEEDBACK, spans, _FEEDBACK.rows, tenant_id=tenant_id, only={})
        .add_columns(
            *(sa.func.sum(sa.case((is_so, 1), else_=0)) for is_so in (_feedback.score > 0, _feedback.score < 0))
        )
        .group_by(sa.literal_column("1"))
    )
    rows = connection.execute(query).all()
    return {bucket: int(good) for bucket, good, _ in rows}, {bucket: int(bad) for bucket, _, bad in rows}


def _seconds(
    connection: sa.Connection, spans: Sequence[BucketRange], tenant_id: str
) -> dict[int, tuple[int | None, int | None]]:
    """The median and the 95th percentile of the microseconds of answers and refusals, by nearest rank."""
    timed = within(connection, OUTCOMES, spans, OUTCOMES.rows, tenant_id=tenant_id, only={}).where(
        _outcome.total_us.is_not(None), _outcome.result.in_(_ENDED_WELL)
    )
    bucket = next(iter(timed.selected_columns))
    ranked = timed.add_columns(
        _outcome.total_us.label("took"),
        sa.func.row_number().over(partition_by=bucket, order_by=_outcome.total_us).label("place"),
        sa.func.count().over(partition_by=bucket).label("of"),
    ).subquery()
    column = ranked.c
    percentiles = (
        sa.func.max(sa.case((column.place == (column["of"] * percent + 99) // 100, column.took)))
        for percent in (50, 95)
    )
    query = sa.select(column.bucket, *percentiles).group_by(column.bucket)
    return {bucket: (median, p95) for bucket, median, p95 in connection.execute(query)}
