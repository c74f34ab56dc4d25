"""A filter in SQL keeps exactly the documents that `retrieval.filters.matches` keeps."""

import hashlib

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.chunks import ChunkRepository
from app.db.filters import compile_filter
from app.db.session import Database
from app.db.tables.documents import document
from retrieval.filters import matches
from retrieval.types import Combination, Comparison, Filter, Metadata, Scope
from tests.app.db.samples import Library
from tests.examples import examples

# the same few names and values again and again, so that filters meet what they ask for
NAMES = st.sampled_from(["a", "b.c", 'q"u', "back\\slash", "$.x", "[0]", "größe", "日本", "a b", "'"])
TEXTS = st.sampled_from(["", "a", "A", "b", "true", "1", "null", "ä", "z", "😀", "\uffff", 'q"', "%", "[1]", "{}"])
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 2, 0.0, 1.0, 1.5, -1.5, 2**53, -(2**53), 0.1, 1e-9]),
    st.integers(-(2**53), 2**53),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-8000, 8000).map(lambda eighths: eighths / 8),
)
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS)
METADATA: st.SearchStrategy[Metadata] = st.dictionaries(
    NAMES, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=4
)
COMPARISONS = st.one_of(
    st.builds(Comparison, NAMES, st.sampled_from(["$eq", "$ne"]), SCALARS),
    st.builds(Comparison, NAMES, st.sampled_from(["$in", "$nin"]), st.lists(SCALARS, max_size=3).map(tuple)),
    st.builds(Comparison, NAMES, st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.one_of(TEXTS, NUMBERS)),
)
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(Combination, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(lambda operand: Combination("$not", (operand,)), inner),
    ),
    max_leaves=5,
)


def kept(database: Database, stored: list[Metadata], condition: Filter) -> list[bool]:
    """Which of `stored` the database keeps, written and read in one transaction that is undone."""
    library = Library(database)
    with database.write() as connection:
        connection.execute(
            sa.insert(document),
            [
                {
                    "id": f"doc_{number}",
                    "tenant_id": "t1",
                    "collection_id": library.collection_id,
                    "version": 1,
                    "status": "queued",
                    "done": 0,
                    "total": 0,
                    "job_id": "job",
                    "created_at": 0.0,
                    "updated_at": 0.0,
                    "metadata": metadata,
                }
                for number, metadata in enumerate(stored)
            ],
        )
        condition_holds = compile_filter(condition, connection)
        rows = connection.execute(sa.select(document.c.id, condition_holds)).all()
        connection.rollback()
    answers = {row[0]: row[1] for row in rows}
    assert None not in answers.values(), "a condition is true or false, never unknown"
    return [bool(answers[f"doc_{number}"]) for number in range(len(stored))]


EXPLORE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(EXPLORE, max_examples=examples(250))
@given(stored=st.lists(METADATA, min_size=1, max_size=8), condition=FILTERS)
def test_sqlite_keeps_what_the_reference_keeps(
    sqlite_database: Database, stored: list[Metadata], condition: Filter
) -> None:
    assert kept(sqlite_database, stored, condition) == [matches(condition, metadata) for metadata in stored]


@settings(EXPLORE, max_examples=examples(100))
@given(stored=st.lists(METADATA, min_size=1, max_size=8), condition=FILTERS)
def test_postgresql_keeps_what_the_reference_keeps(
    postgres_database: Database, stored: list[Metadata], condition: Filter
) -> None:
    assert kept(postgres_database, stored, condition) == [matches(condition, metadata) for metadata in stored]


CASES: list[tuple[Metadata, Filter, bool]] = [
    ({}, Comparison("a", "$eq", None), True),
    ({"a": None}, Comparison("a", "$eq", None), True),
    ({"a": []}, Comparison("a", "$eq", None), False),
    ({}, Comparison("a", "$ne", 1), True),
    ({}, Comparison("a", "$nin", (1,)), True),
    ({}, Comparison("a", "$nin", (1, None)), False),
    ({}, Comparison("a", "$lt", 1), False),
    ({"a": True}, Comparison("a", "$eq", 1), False),
    ({"a": 1}, Comparison("a", "$eq", True), False),
    ({"a": True}, Comparison("a", "$gte", 0), False),
    ({"a": 1}, Comparison("a", "$eq", 1.0), True),
    ({"a": "1"}, Comparison("a", "$eq", 1), False),
    ({"a": "10"}, Comparison("a", "$lt", "9"), True),
    ({"a": 10}, Comparison("a", "$lt", 9), False),
    ({"a": "Z"}, Comparison("a", "$lt", "a"), True),
    ({"a": "\uffff"}, Comparison("a", "$lt", "😀"), True),
    ({"a": ["x", 3]}, Comparison("a", "$eq", 3), True),
    ({"a": ["x", 3]}, Comparison("a", "$ne", 3), False),
    ({"a": [5]}, Comparison("a", "$gt", 1), False),
    ({"a": 2**63 - 1}, Comparison("a", "$eq", 2**63 - 1), True),
    ({"a": 2**63 - 1}, Comparison("a", "$gt", 2**63 - 2), True),
    ({"a": {"b": 1}}, Comparison("a.b", "$eq", 1), False),  # type: ignore[dict-item]
    ({"a.b": 1}, Comparison("a.b", "$eq", 1), True),
]


@pytest.mark.parametrize(("metadata", "condition", "expected"), CASES)
def test_sql_filters_agree_with_the_reference_on_edge_cases(
    database: Database, metadata: Metadata, condition: Filter, *, expected: bool
) -> None:
    assert matches(condition, metadata) is expected
    assert kept(database, [metadata], condition) == [expected]


def test_a_list_of_a_thousand_values_is_no_trouble(database: Database) -> None:
    values: tuple[int | str, ...] = (*range(500), *(hashlib.sha256(b"%d" % n).hexdigest() for n in range(500)))

    assert kept(database, [{"a": 499}, {"a": 500}], Comparison("a", "$in", values)) == [True, False]


def test_many_conditions_nested_deep_are_no_trouble(database: Database) -> None:
    condition: Filter = Combination("$and", tuple(Comparison(f"f{n}", "$ne", n) for n in range(64)))
    for _ in range(8):
        condition = Combination("$not", (condition,))

    assert kept(database, [{}, {"f63": 63}], condition) == [True, False]


@pytest.mark.parametrize("hostile", ["' OR 1=1 --", '") OR 1=1', "$.a", "a'; DROP TABLE document; --", ":x", "%s", "{"])
def test_hostile_field_names_and_values_are_not_executed_as_sql(database: Database, hostile: str) -> None:
    stored: list[Metadata] = [{hostile: hostile}, {"other": "x"}]

    assert kept(database, stored, Comparison(hostile, "$eq", hostile)) == [True, False]


def test_search_and_store_apply_the_filter(database: Database) -> None:
    library = Library(database)
    old = library.index("winter words", metadata={"year": 2020})
    new = library.index("summer words", metadata={"year": 2024})
    chunks = ChunkRepository(database)
    scope = Scope("t1", filter=Comparison("year", "$gte", 2024))

    keys = chunks.keys_in(scope).tolist()

    assert [each.document_id for each in chunks.chunks(keys, scope=scope).values()] == [new.id]
    assert [key for key, _ in chunks.search_text("words", scope=scope, k=9)] == keys
    assert {each.document_id for each in chunks.chunks(chunks.visible_keys().tolist(), scope=Scope("t1")).values()} == {
        old.id,
        new.id,
    }
