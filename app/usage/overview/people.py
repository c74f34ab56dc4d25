"""The use of each person in a range: questions, tokens, cost, and what most of the cost was for."""

from collections.abc import Mapping
from functools import reduce
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.tables.documents import app_user, collection
from app.db.tables.ledger import answer_outcome, api_request
from app.types import Operation
from app.usage.overview.overview import OverviewQuery, end_of
from app.usage.rollups.questions import OUTCOMES, UNKNOWN, ended_before
from app.usage.rollups.spans import BucketRange
from app.usage.rollups.sums import NOTHING, Totals, decimal, totals, within

MOST_PEOPLE = 1000
"""The maximum number of people on the list."""

_MICRO = 1_000_000


def people(
    connection: sa.Connection, query: OverviewQuery, *, limit: int, zone: ZoneInfo, as_of: int, currency: str
) -> dict[str, object]:
    """The `limit` users with the highest cost, then tokens, as a body of the API; `zone` is that of the rollups.

    Call it inside one read transaction.

    Raises:
        InvalidRequest: The range is not valid; `param` names it.
    """
    end = end_of(query, as_of)
    edges = [query.start * _MICRO, end * _MICRO]
    by_operation = _by_user(connection, edges, query.tenant_id, zone, "operation")
    by_collection = _by_user(connection, edges, query.tenant_id, zone, "project_id")
    asked = _questions(connection, edges, query.tenant_id, as_of)
    whole: dict[str, Totals] = dict.fromkeys(asked, NOTHING)
    for user_id, operations in by_operation.items():
        whole[user_id] = reduce(Totals.plus, operations.values(), NOTHING)
    every = sum(some.cost_pico for some in whole.values())
    tokens = sum(some.measures.total_tokens for some in whole.values())
    order = sorted(
        whole,
        key=lambda user_id: (-whole[user_id].cost_pico, -_tokens(whole[user_id]), -asked.get(user_id, 0), user_id),
    )
    shown = order[:limit]
    names = _names(connection, query.tenant_id)
    collections = _collections(connection, query.tenant_id)
    return {
        "object": "list",
        "data": [
            {
                "object": "overview.person",
                "user_id": user_id,
                "name": names.get(user_id) or None,
                "num_questions": asked.get(user_id, 0),
                "num_model_requests": whole[user_id].calls,
                "input_tokens": whole[user_id].measures.input_tokens,
                "output_tokens": whole[user_id].measures.output_tokens,
                "cost": {
                    "value": decimal(whole[user_id].cost_pico) if whole[user_id].priced else None,
                    "currency": currency,
                },
                "share": _share(whole[user_id], every, tokens),
                **_spent_on(by_operation.get(user_id, {})),
                **_mostly_in(by_collection.get(user_id, {}), collections),
            }
            for user_id in shown
        ],
        "num_people": len(order),
        "start_time": query.start,
        "end_time": end,
        "as_of": as_of,
    }


def _questions(connection: sa.Connection, edges: list[int], tenant_id: str, as_of: int) -> dict[str, int]:
    """The number of questions by user."""
    span = [BucketRange(0, *edges)]
    known = within(connection, OUTCOMES, span, OUTCOMES.rows, tenant_id=tenant_id, only={})
    unknown = within(connection, UNKNOWN, span, UNKNOWN.rows, tenant_id=tenant_id, only={}).where(ended_before(as_of))
    found: dict[str, int] = {}
    for query, user_id in ((known, answer_outcome.c.user_id), (unknown, api_request.c.user_id)):
        counted = query.add_columns(user_id, sa.func.count()).group_by(sa.literal_column("1"), sa.literal_column("2"))
        for _, who, count in connection.execute(counted):
            found[who] = found.get(who, 0) + count
    return found


def _by_user(
    connection: sa.Connection, edges: list[int], tenant_id: str, zone: ZoneInfo, dimension: str
) -> dict[str, dict[str, Totals]]:
    """The totals of each user by the values of one more dimension."""
    groups = ["user_id", dimension]
    found: dict[str, dict[str, Totals]] = {}
    for (_, user_id, value), some in totals(connection, edges, tenant_id=tenant_id, zone=zone, groups=groups).items():
        found.setdefault(str(user_id), {})[str(value)] = some
    return found


def _spent_on(by_operation: Mapping[str, Totals]) -> dict[str, object]:
    """The cost and tokens of answers and of indexing documents, apart."""
    parts = {"answers": NOTHING, "documents": NOTHING}
    for operation, some in by_operation.items():
        kind = "documents" if operation == Operation.EMBED_DOC else "answers"
        parts[kind] = parts[kind].plus(some)
    return {f"{kind}_cost": decimal(some.cost_pico) if some.priced else None for kind, some in parts.items()} | {
        f"{kind}_tokens": _tokens(some) for kind, some in parts.items()
    }


def _mostly_in(by_collection: Mapping[str, Totals], names: Mapping[str, str]) -> dict[str, object]:
    """The collection that the most of a user's cost was for; None for requests to several or all."""
    if not by_collection:
        return {"collection_id": None, "collection_name": None}
    most = max(by_collection, key=lambda one: (by_collection[one].cost_pico, _tokens(by_collection[one]), one))
    return {"collection_id": most or None, "collection_name": names.get(most)}


def _names(connection: sa.Connection, tenant_id: str) -> dict[str, str]:
    query = sa.select(app_user.c.id, app_user.c.name).where(app_user.c.tenant_id == tenant_id)
    return {row.id: row.name for row in connection.execute(query)}


def _collections(connection: sa.Connection, tenant_id: str) -> dict[str, str]:
    query = sa.select(collection.c.id, collection.c.name).where(collection.c.tenant_id == tenant_id)
    return {row.id: row.name for row in connection.execute(query)}


def _share(some: Totals, cost: int, tokens: int) -> float | None:
    """The share of the whole tenant's cost, or of its tokens where nothing has a price."""
    if cost > 0:
        return round(some.cost_pico / cost, 4)
    return round(_tokens(some) / tokens, 4) if tokens else None


def _tokens(some: Totals) -> int:
    return some.measures.total_tokens
