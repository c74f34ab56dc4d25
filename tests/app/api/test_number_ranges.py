"""A number outside its range is refused with 422 on every route, and one at the end of its range is no failure."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.app.api.uploading import send
from tests.described import openapi_document

DIGITS_300 = 10**299
DOCUMENT: dict[str, Any] = openapi_document()


def integer_parameters() -> Iterator[tuple[str, str, str]]:
    """Method, path and name of every integer parameter in a path or query."""
    for path, there in DOCUMENT["paths"].items():
        for method, operation in there.items():
            for parameter in operation.get("parameters", ()):
                if parameter["schema"].get("type") == "integer" and parameter["in"] in ("path", "query"):
                    yield method.upper(), path, parameter["name"]


def request(client: TestClient, method: str, path: str, values: dict[str, object]) -> Any:
    """Send a request with `values`; every other required parameter gets a value that is valid."""
    query = dict(values)
    for parameter in DOCUMENT["paths"][path][method.lower()]["parameters"]:
        name = parameter["name"]
        value = values.get(name, 1 if parameter["schema"].get("type") == "integer" else "x")
        if parameter["in"] == "path":
            path = path.replace("{" + name + "}", str(value))
            query.pop(name, None)
        elif parameter["in"] == "query" and parameter.get("required"):
            query[name] = value
    return client.request(method, path, params={name: str(value) for name, value in query.items()})


def test_a_number_of_300_digits_is_refused(client):
    parameters = [*integer_parameters()]
    assert ("GET", "/v1/documents/{document_id}/file", "version") in parameters
    for method, path, name in parameters:
        for value in (DIGITS_300, -DIGITS_300):
            answered = request(client, method, path, {name: value})

            if answered.status_code in (404, 503) and "{" in path:
                continue  # looked up first: there is no `x`, and no model is loaded here
            assert answered.status_code == 422, (method, path, name, answered.text)
            assert answered.json()["param"] == name, (method, path)


def test_the_largest_version_is_a_version_that_is_not_there(client):
    document = send(client, "a.txt", b"Text.").json()["id"]

    for part in ("content", "file", "pages/1", "boxes?start=0&end=1"):
        mark = "&" if "?" in part else "?"
        assert client.get(f"/v1/documents/{document}/{part}{mark}version={2**31 - 1}").status_code == 404
        assert client.get(f"/v1/documents/{document}/{part}{mark}version={2**31}").status_code == 422


@pytest.mark.parametrize("number", [str(2**63), str(-(2**63) - 1), "9" * 300, "9" * 5000], ids=len)
def test_a_number_in_metadata_is_of_64_bits(client, number):
    body = f'{{"name": "a", "metadata": {{"number": {number}}}}}'

    answered = client.post("/v1/collections", content=body, headers={"Content-Type": "application/json"})

    assert answered.status_code in (400, 422), answered.text
