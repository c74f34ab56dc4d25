"""Compiles metadata filters to SQL conditions on `document.metadata`; `retrieval.filters.matches` is the reference.

Field names are bound parameters and never part of a JSON path, since a name may hold quotes and dots. SQLite iterates
over the members with `json_each`; PostgreSQL selects one with `->`. Both read numbers in decimal form, so beyond 2**53
they may not distinguish a float from the next integer.
"""

from collections.abc import Callable
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from app.db.dialect import PerDialect
from app.db.session import to_json
from app.db.tables.documents import document
from retrieval.types import Comparison, Filter, MetadataValue

_Condition = sa.ColumnElement[bool]
_ORDER: dict[str, Callable[[Any, Any], _Condition]] = {
    "$gt": lambda left, right: left > right,
    "$gte": lambda left, right: left >= right,
    "$lt": lambda left, right: left < right,
    "$lte": lambda left, right: left <= right,
}


def compile_filter(condition: Filter, connection: sa.Connection) -> _Condition:
    """A SQL condition on `document`, true or false and never NULL, for the database of `connection`."""
    if isinstance(condition, Comparison):
        field = _FIELD.on(connection)(condition.field)
        return _compare(condition, field)
    operands = [compile_filter(operand, connection) for operand in condition.operands]
    match condition.op:
        case "$and":
            return sa.and_(sa.true(), *operands)
        case "$or":
            return sa.or_(sa.false(), *operands)
        case "$not":
            return sa.not_(operands[0])


class _Field(Protocol):
    """SQL conditions on one metadata field of a document."""

    def missing(self) -> _Condition: ...

    def any_of(self, values: list[MetadataValue]) -> _Condition:
        """The value, or an element of a list, equals one of `values` in type and value."""
        ...

    def ordered(self, op: str, value: str | int | float) -> _Condition: ...


def _compare(comparison: Comparison, field: _Field) -> _Condition:
    value = comparison.value
    match comparison.op:
        case "$eq" | "$in" | "$ne" | "$nin":
            wanted = list(value) if isinstance(value, tuple) else [value]
            found = field.any_of(wanted) if wanted else sa.false()
            if None in wanted:
                found = sa.or_(found, field.missing())
            return found if comparison.op in ("$eq", "$in") else sa.not_(found)
        case "$gt" | "$gte" | "$lt" | "$lte":
            if value is None or isinstance(value, bool | tuple):
                return sa.false()
            return field.ordered(comparison.op, value)


class _Sqlite:
    """A metadata field on SQLite, read with `json_each`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def missing(self) -> _Condition:
        return sa.not_(self._exists(_members(document.c.metadata), sa.true()))

    def any_of(self, values: list[MetadataValue]) -> _Condition:
        member = _members(document.c.metadata)
        # the CASE keeps json_each away from values that are not JSON
        element = _members(sa.case((member.c.type == "array", member.c.value), else_="[]"))
        inside = sa.exists(sa.select(sa.literal(1)).select_from(element).where(_is_any_of(element, values)))
        return self._exists(member, sa.or_(_is_any_of(member, values), inside))

    def ordered(self, op: str, value: str | int | float) -> _Condition:
        member = _members(document.c.metadata)
        types = ("text",) if isinstance(value, str) else ("integer", "real")
        return self._exists(member, sa.and_(member.c.type.in_(types), _ORDER[op](member.c.atom, _raw(value))))

    def _exists(self, member: sa.TableValuedAlias, condition: _Condition) -> _Condition:
        return sa.exists(sa.select(sa.literal(1)).select_from(member).where(member.c.key == self._name, condition))


def _members(json: sa.ColumnElement[Any]) -> sa.TableValuedAlias:
    return sa.func.json_each(json).table_valued("key", "type", "value", "atom").alias()


def _raw(value: object) -> sa.BindParameter[Any]:
    """A parameter that is bound without conversion by SQLAlchemy."""
    return sa.bindparam(None, value, type_=sa.types.NullType())


def _is_any_of(member: sa.TableValuedAlias, values: list[MetadataValue]) -> _Condition:
    # one IN per type: a chain of ORs would exceed SQLite's limit of expression depth
    names = {None: "null", True: "true", False: "false"}
    types = [names[value] for value in values if value is None or isinstance(value, bool)]
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sa.or_(
        member.c.type.in_(types),
        member.c.atom.in_([_raw(text) for text in texts]),  # text is never equal to a value of another type
        sa.and_(member.c.type.in_(("integer", "real")), member.c.atom.in_([_raw(number) for number in numbers])),
    )


class _Postgresql:
    """A metadata field on PostgreSQL, read with `->`."""

    def __init__(self, name: str) -> None:
        bound = sa.bindparam(None, name, sa.Text)
        self._json = document.c.metadata.op("->", return_type=JSONB())(bound)
        self._text = document.c.metadata.op("->>", return_type=sa.Text())(bound)

    def missing(self) -> _Condition:
        return self._json.is_(sa.null())

    def any_of(self, values: list[MetadataValue]) -> _Condition:
        # containment: of scalars it is equality, and a list contains each of its elements
        wanted = sa.cast(sa.bindparam(None, [to_json(value) for value in values], ARRAY(sa.Text)), ARRAY(JSONB))
        return sa.func.coalesce(self._json.op("@>", is_comparison=True)(sa.any_(wanted)), sa.false())

    def ordered(self, op: str, value: str | int | float) -> _Condition:
        if isinstance(value, str):
            # UTF-8 bytes, which collation C compares, sort as code points do
            kind, holds = "string", _ORDER[op](self._text.collate("C"), sa.bindparam(None, value, sa.Text))
        else:
            number = sa.cast(sa.bindparam(None, repr(value), sa.Text), sa.Numeric)
            kind, holds = "number", _ORDER[op](sa.cast(self._text, sa.Numeric), number)
        return sa.case((sa.func.jsonb_typeof(self._json) == kind, holds), else_=sa.false())


_FIELD: PerDialect[Callable[[str], _Field]] = PerDialect(sqlite=_Sqlite, postgresql=_Postgresql)
