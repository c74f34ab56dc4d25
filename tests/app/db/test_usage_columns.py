"""app.db.tables.usage_columns: every column of usage is declared once, and what is derived agrees with the tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.schemas.usage_events import LineBody
from app.db.tables.ledger import usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.rollups import usage_rollup_15m, usage_rollup_facet
from app.db.tables.usage_columns import COUNTED, LINE, MEASURES, PARTS, SHOWN, STORED_DIMENSIONS, Measures, UsageColumn
from app.types import Components

COUNTS = st.builds(Measures, *[st.integers(-1000, 1000)] * len(Measures._fields))


@pytest.mark.parametrize("column", [*LINE.values(), *MEASURES.values()], ids=lambda column: column.name)
def test_each_column_is_where_it_is_said_to_be(column: UsageColumn) -> None:
    assert not column.column or column.column in usage_event.c
    assert column.of_adjustment != "own" or column.own_column in usage_adjustment.c
    assert column.of_adjustment != "call" or column.column
    assert column.says


def test_every_table_has_every_count() -> None:
    for table in (usage_event, usage_adjustment, usage_rollup_15m, usage_rollup_facet):
        assert {*Measures._fields} <= {*table.c.keys()}
    assert {*STORED_DIMENSIONS} <= {*usage_event.c.keys()} & {*usage_rollup_15m.c.keys()}


def test_the_parts_of_the_input_are_the_components() -> None:
    assert {*PARTS.values()} == {*Components.__slots__}
    assert all(MEASURES[name].heading == f"component_{part}" for name, part in PARTS.items())


def test_an_export_has_each_column_once_and_parts_behind_all_counts() -> None:
    headings = [column.heading for column in SHOWN]

    assert len(headings) == len({*headings}) == len(LINE) + len(MEASURES)
    assert headings.index("max_output_tokens") < min(headings.index(MEASURES[part].heading) for part in PARTS)


def test_the_api_shows_what_exports_show_with_the_parts_under_one_name() -> None:
    shown = {column.label for column in SHOWN if not column.part_of} - {"currency"}

    assert {*LineBody.model_fields} == shown | {"object", "components", "settled_local"}


@given(COUNTS, COUNTS)
def test_sums_are_count_by_count(one: Measures, other: Measures) -> None:
    assert one.plus(other) == other.plus(one)
    assert one.plus(Measures()) == one
    assert one.plus(other).total_tokens == one.total_tokens + other.total_tokens
    assert one.plus(other).components == one.components.plus(other.components)


@given(COUNTS)
def test_what_is_counted_in_reports_is_every_count_but_the_parts(counts: Measures) -> None:
    assert counts.counted.keys() == COUNTED.keys()
    assert {*COUNTED} - {"input_uncached_tokens"} == {*Measures._fields} - {*PARTS}
    assert counts.counted["input_uncached_tokens"] + counts.input_cached_tokens == counts.input_tokens


def test_counts_are_read_from_an_input_and_its_parts() -> None:
    components = Components(template=1, system=2, history=3, question=4, context=5)

    assert Measures.read(15, components).components == components
    assert Measures.read(15, components)._asdict() == Measures.of(Measures.read(15, components)._asdict())._asdict()
