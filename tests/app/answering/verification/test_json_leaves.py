"""The values of a JSON answer that no source states, by their JSON pointers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.verification.json_leaves import unsupported_leaves
from tests.app.answering.sources import REPORT, source

ANY = json.dumps({"type": "object"})
SOURCES = (
    source(REPORT),
    source(
        "| Item | 2025 |\n|---|---|\n| Loss | (1,234.5) |\n| Tax | 30 |\n| Share | 29 % |", number=2, heading="Items"
    ),
)


@pytest.mark.parametrize(
    "value",
    [
        48_000_000,
        "48 million dollars",
        12,
        0.12,
        0.29,
        "12 %",
        1234.5,
        -1234.5,
        30,
        "Zoë Müller",
        "March 2024",
        "chief financial officer",
        "",
        None,
        True,
        [],
        {},
    ],
)
def test_a_value_that_the_sources_state_is_not_listed(value: object) -> None:
    assert unsupported_leaves(json.dumps({"value": value}), SOURCES, schema=ANY) == ()


@pytest.mark.parametrize("value", [49_000_000, 0.13, -7, 1e300, 10**400, "47 million dollars", "May 2024", "Ada Smith"])
def test_a_value_with_a_detail_that_no_source_states_is_listed(value: object) -> None:
    assert unsupported_leaves(json.dumps({"value": value}), SOURCES, schema=ANY) == ("/value",)


def test_pointers_go_into_lists_and_escape_the_signs_of_rfc_6901() -> None:
    document = {"a/b": [{"m~n": 99}, 12], "": "Ada Smith"}
    assert unsupported_leaves(json.dumps(document), SOURCES, schema=ANY) == ("/a~1b/0/m~0n", "/")
    assert unsupported_leaves("99", SOURCES, schema=ANY) == ("",)


def test_a_choice_that_the_schema_offers_states_nothing() -> None:
    schema = json.dumps({"properties": {"unit": {"enum": ["EUR", "USD"]}, "version": {"const": 7}}})
    text = json.dumps({"unit": "EUR", "version": 7, "other": "GBP"})
    assert unsupported_leaves(text, SOURCES, schema=schema) == ("/other",)


@pytest.mark.parametrize("text", ["", '{"value": 9', "[" * 100_000, "[" * 900 + "]" * 900, "no JSON"])
def test_text_that_is_no_whole_document_has_no_values(text: str) -> None:
    assert unsupported_leaves(text, SOURCES, schema=ANY) == ()


def test_numbers_beyond_those_of_floating_point_are_listed() -> None:
    assert unsupported_leaves('{"value": 1e999, "small": 1e-7}', SOURCES, schema=ANY) == ("/value", "/small")
    assert unsupported_leaves(f'{{"value": {"9" * 4300}}}', SOURCES, schema=ANY) == ("/value",)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_whatever_the_document_every_pointer_leads_to_a_string_or_a_number(value: object) -> None:
    for pointer in unsupported_leaves(json.dumps(value), SOURCES, schema=ANY):
        found = value
        for step in pointer.split("/")[1:]:
            assert isinstance(found, list)
            found = found[int(step)]
        assert isinstance(found, str | int | float)
