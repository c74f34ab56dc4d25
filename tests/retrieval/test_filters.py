"""retrieval.filters reads Mongo-like JSON and defines what it means."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import InvalidFilter
from retrieval.filters import matches, parse_filter
from retrieval.types import Combination, Comparison, Filter


def passes(raw: object, metadata: dict[str, Any]) -> bool:
    parsed = parse_filter(raw)
    assert parsed is not None
    return matches(parsed, metadata)


@pytest.mark.parametrize("raw", [None, {}])
def test_an_empty_filter_parses_to_none(raw: object) -> None:
    assert parse_filter(raw) is None


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ({"lang": "de"}, Comparison("lang", "$eq", "de")),
        ({"lang": None}, Comparison("lang", "$eq", None)),
        ({"year": {"$gte": 2024}}, Comparison("year", "$gte", 2024)),
        ({"tag": {"$in": ["a", 1, None]}}, Comparison("tag", "$in", ("a", 1, None))),
        ({"tag": {"$nin": []}}, Comparison("tag", "$nin", ())),
        (
            {"year": {"$gte": 1, "$lt": 3}},
            Combination("$and", (Comparison("year", "$gte", 1), Comparison("year", "$lt", 3))),
        ),
        (
            {"a": 1, "b": {"$ne": True}},
            Combination("$and", (Comparison("a", "$eq", 1), Comparison("b", "$ne", True))),
        ),
        ({"$or": [{"a": 1}]}, Combination("$or", (Comparison("a", "$eq", 1),))),
        ({"$not": {"a": 1}}, Combination("$not", (Comparison("a", "$eq", 1),))),
        ({"a": {"$not": {"$gt": 1}}}, Combination("$not", (Comparison("a", "$gt", 1),))),
        ({"a.b 'c\" %": 1}, Comparison("a.b 'c\" %", "$eq", 1)),
    ],
)
def test_a_filter_is_parsed(raw: object, parsed: Filter) -> None:
    assert parse_filter(raw) == parsed


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ([], "a list"),
        ("year > 3", "a string"),
        (True, "a boolean"),
        ({"$regex": "x"}, "$regex"),
        ({"year": {"$regex": "x"}}, '"$regex" on the field "year"'),
        ({"year": {"gte": 1}}, '"gte" on the field "year"'),
        ({"year": {}}, '"year"'),
        ({"$eq": 1}, "needs a field"),
        ({"$and": []}, '"$and"'),
        ({"$or": {"a": 1}}, '"$or"'),
        ({"$or": [{}]}, "empty"),
        ({"$or": [1]}, "a number"),
        ({"$not": [{"a": 1}]}, "a list"),
        ({"$not": {}}, "empty"),
        ({"a": {"$not": 1}}, '"$not"'),
        ({"a": {"$in": "x"}}, '"$in"'),
        ({"a": {"$in": [["x"]]}}, '"$in"'),
        ({"a": {"$in": [{}]}}, '"$in"'),
        ({"a": {"$in": [0] * 1001}}, "1000"),
        ({"a": ["x"]}, '"$in"'),
        ({"a": {"$gt": True}}, "a boolean"),
        ({"a": {"$lt": None}}, "null"),
        ({"a": {"$lte": []}}, '"$lte"'),
        ({"a": float("nan")}, "finite"),
        ({"a": {"$gt": float("inf")}}, "finite"),
        ({"a": 2**63}, "64 bits"),
        ({"a": "\0"}, "NUL"),
        ({"a": "\ud800"}, "half"),
        ({"": 1}, "field name"),
        ({"x" * 129: 1}, "field name"),
        ({"\ud800": 1}, "field name"),
        ({1: 1}, "field name"),
        ({"a": {1: 1}}, "Unknown operator"),
    ],
)
def test_an_invalid_filter_error_names_the_faulty_part(raw: object, named: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(raw)

    assert named in str(caught.value)
    str(caught.value).encode()  # fit to send


@pytest.mark.parametrize("raw", [{"$" + "x" * 500: 1}, {"a": {"$" + "x" * 500: 1}}])
def test_an_unknown_operator_is_named_in_forty_characters(raw: object) -> None:
    with pytest.raises(InvalidFilter, match=r'^Unknown operator "\$x{38}…"'):
        parse_filter(raw)


def nested(levels: int, *, inside: object) -> object:
    for _ in range(levels):
        inside = {"$not": inside}
    return inside


def test_eight_levels_are_allowed_and_nine_are_not() -> None:
    assert parse_filter(nested(7, inside={"a": 1})) is not None
    with pytest.raises(InvalidFilter, match="8 levels"):
        parse_filter(nested(8, inside={"a": 1}))
    with pytest.raises(InvalidFilter, match="8 levels"):
        parse_filter(nested(100_000, inside={"a": 1}))


def test_a_fields_own_nesting_counts_too() -> None:
    with pytest.raises(InvalidFilter, match="8 levels"):
        parse_filter({"a": nested(100_000, inside={"$gt": 1})})


def test_sixty_four_conditions_are_allowed_and_sixty_five_are_not() -> None:
    assert parse_filter({"$or": [{"a": n} for n in range(64)]}) is not None
    with pytest.raises(InvalidFilter, match="64 conditions"):
        parse_filter({"$or": [{"a": n} for n in range(65)]})


@pytest.mark.parametrize(
    ("raw", "metadata", "expected"),
    [
        # a missing field is null
        ({"a": None}, {}, True),
        ({"a": None}, {"a": None}, True),
        ({"a": None}, {"a": 0}, False),
        ({"a": {"$ne": None}}, {}, False),
        ({"a": {"$ne": 1}}, {}, True),
        ({"a": {"$in": [1, None]}}, {}, True),
        ({"a": {"$in": [1]}}, {}, False),
        ({"a": {"$nin": [1]}}, {}, True),
        ({"a": {"$gt": 0}}, {}, False),
        ({"a": {"$lte": 0}}, {"a": None}, False),
        ({"a": {"$not": {"$gt": 0}}}, {}, True),
        # equality is typed
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": False}, {"a": 0}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": {"$in": [True]}}, {"a": 1}, False),
        ({"a": {"$nin": [1]}}, {"a": True}, True),
        # orders compare like with like
        ({"a": {"$gte": 2}}, {"a": 2}, True),
        ({"a": {"$gt": 2}}, {"a": 2}, False),
        ({"a": {"$gt": 2}}, {"a": 2.5}, True),
        ({"a": {"$lt": 2}}, {"a": 2}, False),
        ({"a": {"$lte": 2}}, {"a": 2}, True),
        ({"a": {"$gt": 0}}, {"a": True}, False),
        ({"a": {"$gt": 0}}, {"a": "1"}, False),
        ({"a": {"$gte": "2024-01-01"}}, {"a": "2024-06-30"}, True),
        ({"a": {"$lt": "a"}}, {"a": "Z"}, True),
        ({"a": {"$gt": 0}}, {"a": [1]}, False),
        # lists hold if an element does
        ({"a": "x"}, {"a": ["w", "x"]}, True),
        ({"a": "x"}, {"a": []}, False),
        ({"a": None}, {"a": []}, False),
        ({"a": None}, {"a": ["x", None]}, True),
        ({"a": {"$in": ["x", "y"]}}, {"a": ["z", "y"]}, True),
        ({"a": {"$in": []}}, {"a": ["z"]}, False),
        ({"a": {"$ne": "x"}}, {"a": ["w", "x"]}, False),
        ({"a": {"$nin": []}}, {"a": "z"}, True),
        # combinations
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, True),
        ({"a": {"$gt": 1, "$lt": 3}}, {"a": 3}, False),
        ({"$or": [{"a": 1}, {"b": 2}]}, {"b": 2}, True),
        ({"$or": [{"a": 1}, {"b": 2}]}, {}, False),
        ({"$and": [{"a": 1}, {"b": 2}]}, {"a": 1}, False),
        ({"$not": {"a": 1}}, {"a": 1}, False),
    ],
)
def test_a_condition_means_what_mongo_users_expect(raw: object, metadata: dict[str, Any], expected: bool) -> None:
    assert passes(raw, metadata) is expected


scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0]) | st.sampled_from(["", "a", "1"])
metadatas = st.dictionaries(st.sampled_from("ab"), scalars | st.lists(scalars, max_size=3))


@given(value=scalars, values=st.lists(scalars, max_size=3), metadata=metadatas)
def test_opposites_are_opposites_and_in_is_equal_to_any(
    value: Any, values: list[Any], metadata: dict[str, Any]
) -> None:
    assert passes({"a": {"$ne": value}}, metadata) is not passes({"a": value}, metadata)
    assert passes({"a": {"$nin": values}}, metadata) is not passes({"a": {"$in": values}}, metadata)
    assert passes({"a": {"$in": values}}, metadata) is any(passes({"a": one}, metadata) for one in values)


anything = st.recursive(
    scalars | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "$and", "$or", "$not", "$in", "$gt", "$x", ""]), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(raw=anything, metadata=metadatas)
def test_any_json_is_either_a_working_filter_or_refused_as_such(raw: object, metadata: dict[str, Any]) -> None:
    try:
        parsed = parse_filter(raw)
    except InvalidFilter:
        return
    assert parsed is None or isinstance(matches(parsed, metadata), bool)
