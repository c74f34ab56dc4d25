"""Every number that a request may carry has a smallest and a largest value, so that none reaches a file name or SQL
beyond what these can hold."""

from collections.abc import Iterator
from typing import Any

from tests.described import openapi_document

_LOWER, _UPPER = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
DOCUMENT: dict[str, Any] = openapi_document()


def schemas_of_requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of every parameter and every body, named by its route."""
    for path, there in DOCUMENT["paths"].items():
        for method, operation in there.items():
            route = f"{method.upper()} {path}"
            for parameter in operation.get("parameters", ()):
                yield f"{route}: {parameter['name']}", parameter["schema"]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                yield f"{route}: body", content["schema"]


def numbers(name: str, schema: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas of integers and numbers inside `schema`, named by their fields."""
    if "$ref" in schema:
        referred = schema["$ref"].rsplit("/", 1)[-1]
        if referred not in above:
            yield from numbers(referred, DOCUMENT["components"]["schemas"][referred], (*above, referred))
        return
    kinds = {schema["type"]} if isinstance(schema.get("type"), str) else set(schema.get("type", ()))
    if {"integer", "number"} & kinds and not {"const", "enum"} & schema.keys():
        yield name, schema
    parts = [part for key in ("anyOf", "oneOf", "allOf", "prefixItems") for part in schema.get(key, ())]
    for part in parts:
        yield from numbers(name, part, above)
    for field, part in schema.get("properties", {}).items():
        if field != "metadata":  # its numbers are of 64 bits, which app.db.values checks
            yield from numbers(f"{name}.{field}", part, above)
    for key in ("items", "additionalProperties"):
        if isinstance(part := schema.get(key), dict):
            yield from numbers(f"{name}[]", part, above)


FOUND = [number for name, schema in schemas_of_requests() for number in numbers(name, schema)]


def test_every_number_of_a_request_has_a_smallest_and_a_largest_value() -> None:
    unbounded = {name for name, schema in FOUND if not (_LOWER & schema.keys() and _UPPER & schema.keys())}

    assert sorted(unbounded) == []


def test_the_numbers_of_requests_are_found() -> None:
    names = {name for name, _ in FOUND}

    assert names >= {"GET /v1/documents/{document_id}/file: version", "AskRequest.top_k", "NewBudget.thresholds[]"}
