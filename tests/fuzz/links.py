"""Where the ids come from that requests need: OpenAPI links, so that chains of requests go on with what there is.

Schemathesis finds most of them by itself; these are of the ids that stand in an address's query or in a body.
"""

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

_MOST_IN_ADDRESS = 1_000
_MERGED = {"x-schemathesis": {"merge_body": True}}  # the rest of the body is made up


def with_links(document: Document) -> Document:
    """`document`, whose answers with ids lead to every operation that takes such an id; it is changed in place.

    Limits on lists and texts in addresses go: at the limit an address would be longer than any HTTP server reads.
    """
    sources = _sources(document)
    for _, _, operation in _operations(document):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                _unlimit(parameter["schema"])
    for path, method, operation in _operations(document):
        for name in _ids_in_address(operation):
            _link(sources.get(name, ()), operation, f"{method} {path}", name, {"parameters": name})
        for name, field in _ids_in_body(document, operation):
            _link(sources.get(name, ()), operation, f"{method} {path}", name, {"requestBody": field})
    return document


def _unlimit(schema: Document) -> None:
    """Take the limits of more than a thousand items or characters away, in every alternative."""
    for limit in ("maxItems", "maxLength"):
        if schema.get(limit, 0) > _MOST_IN_ADDRESS:
            del schema[limit]
    for inner in (*schema.get("anyOf", ()), schema.get("items")):
        if isinstance(inner, dict):
            _unlimit(inner)


def _operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _sources(document: Document) -> dict[str, list[tuple[Document, str]]]:
    """By the name of an id the answers that hold one, and where: what a collection of things answers holds its ids."""
    found: dict[str, list[tuple[Document, str]]] = {}
    for path in document["paths"]:
        parent, _, last = path.rpartition("/")
        if not (last.startswith("{") and last.endswith("_id}")) or parent not in document["paths"]:
            continue
        for method, pointer in (("post", "/id"), ("get", "/data/0/id")):
            for status, response in document["paths"][parent].get(method, {}).get("responses", {}).items():
                if status in {"200", "201", "202"} and "application/json" in response.get("content", {}):
                    found.setdefault(last[1:-1], []).append((response, pointer))
    return found


def _ids_in_address(operation: Document) -> list[str]:
    return [
        one["name"] for one in operation.get("parameters", []) if one["name"].endswith("_id") and one["in"] != "header"
    ]


def _ids_in_body(document: Document, operation: Document) -> Iterator[tuple[str, str]]:
    """Names of ids that a JSON body may hold, with the field's own name."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for choice in schema.get("anyOf", [schema]):
        resolved = choice
        if "$ref" in choice:
            resolved = document["components"]["schemas"][choice["$ref"].rpartition("/")[2]]
        for field in resolved.get("properties", {}):
            if field.endswith(("_id", "_ids")):
                yield field.removesuffix("s"), field


def _link(
    sources: list[tuple[Document, str]] | tuple[()], operation: Document, target: str, name: str, where: dict[str, str]
) -> None:
    for response, pointer in sources:
        value = f"$response.body#{pointer}"
        link: Document = {"operationId": operation["operationId"]}
        if "parameters" in where:
            link["parameters"] = {name: value}
        else:
            field = where["requestBody"]
            link |= {"requestBody": {field: [value] if field.endswith("s") else value}, **_MERGED}
        response.setdefault("links", {})[f"{name} of {target}"] = link
