"""Every text, list and object that a request may hold has a maximum, in its body, its query and its path.

The OpenAPI document is made from the models that read the requests, so a maximum in it is one that is enforced. The
few schemas that are written by hand are tried over HTTP in `tests/app/api/test_request_bounds.py`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.described import openapi_document

Schema = dict[str, Any]

_COMBINED = ("anyOf", "oneOf", "allOf")
_PARSED = frozenset({"date-time"})  # formats whose parser refuses long texts by itself
_MULTIPART = "multipart/form-data"


def unbounded(schema: Schema, schemas: dict[str, Schema], *, place: str = "", media_type: str = "") -> Iterator[str]:
    """The places in a schema that may hold a text, list or object of any size."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        rest = {known: found for known, found in schemas.items() if known != name}
        if name in schemas:  # a schema inside itself was looked at before
            yield from unbounded(schemas[name], rest, place=place, media_type=media_type)
        return
    for choice in (choice for kind in _COMBINED for choice in schema.get(kind, ())):
        yield from unbounded(choice, schemas, place=place, media_type=media_type)
    if "enum" in schema or "const" in schema:
        return
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "string" and not _is_bounded(schema, media_type):
            yield f"{place}: a string"
        if kind == "array":
            if "maxItems" not in schema:
                yield f"{place}: an array"
            yield from unbounded(schema.get("items", {}), schemas, place=f"{place}[]", media_type=media_type)
        if kind == "object":
            further = schema.get("additionalProperties", True)
            if further is not False and "maxProperties" not in schema:
                yield f"{place}: an object"
            if isinstance(further, dict):
                yield from unbounded(further, schemas, place=f"{place}.*", media_type=media_type)
            for name, field in schema.get("properties", {}).items():
                yield from unbounded(field, schemas, place=f"{place}.{name}", media_type=media_type)
    if not kinds and not any(kind in schema for kind in _COMBINED):
        yield f"{place}: anything"


def _is_bounded(schema: Schema, media_type: str) -> bool:
    if schema.get("format") == "binary":
        return media_type == _MULTIPART  # a file, which the gate limits and the route streams to disk
    return "maxLength" in schema or schema.get("format") in _PARSED


def sent_to(operation: dict[str, Any]) -> Iterator[tuple[str, str, Schema]]:
    """Place, media type and schema of everything that a request to an operation may hold."""
    for parameter in operation.get("parameters", ()):
        yield f"{parameter['in']} {parameter['name']}", "", parameter["schema"]
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield "body", media_type, content["schema"]


DOCUMENT: dict[str, Any] = openapi_document()
OPERATIONS = [(method, path) for path, described in DOCUMENT["paths"].items() for method in described]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_part_of_a_request_has_a_maximum(method, path):
    schemas = DOCUMENT["components"]["schemas"]

    found = [
        where
        for place, media_type, schema in sent_to(DOCUMENT["paths"][path][method])
        for where in unbounded(schema, schemas, place=place, media_type=media_type)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "string"}, "body: a string"),
        ({"type": "string", "format": "uri"}, "body: a string"),
        ({"type": "string", "format": "binary"}, "body: a string"),
        ({"type": ["null", "string"]}, "body: a string"),
        ({"type": "array", "items": {"type": "integer"}}, "body: an array"),
        ({"type": "array", "maxItems": 3, "items": {"type": "string"}}, "body[]: a string"),
        ({"type": "object", "additionalProperties": {"type": "null"}}, "body: an object"),
        ({"type": "object", "properties": {}}, "body: an object"),
        ({"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}}, "body.*: a string"),
        ({"anyOf": [{"type": "null"}, {"$ref": "#/components/schemas/Node"}]}, "body.name: a string"),
        ({"type": "array", "maxItems": 3}, "body[]: anything"),
        ({}, "body: anything"),
    ],
)
def test_what_has_no_maximum_is_found(schema, place):
    node = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}},
    }

    assert list(unbounded(schema, {"Node": node}, place="body")) == [place]
