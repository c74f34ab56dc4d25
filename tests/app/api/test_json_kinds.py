"""A number is no boolean, and a text that spells one is neither: what does not fit the description is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from app.api.openai.schemas.chat import ChatMessage
from app.api.schemas.shape import RequestBody


class Body(RequestBody):
    """Fields of every kind that JSON keeps apart."""

    count: int = Field(default=0, description="A whole number.")
    share: float | None = Field(default=None, description="A number.")
    on: bool | None = Field(default=None, description="A boolean.")
    marks: list[int] = Field(default=[], description="Whole numbers.")
    limit: int | str = Field(default=0, description="A whole number or a text.")
    anything: Any = Field(default=None, description="Anything.")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("count", True), ("count", "5"), ("count", 2.5), ("share", False), ("share", "0.5"), ("on", 0), ("on", 1.0),
        ("on", "true"), ("marks", [1, True]), ("marks", ["1"]), ("limit", True),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_its_fields_name(field, value):
    with pytest.raises(ValidationError) as refused:
        Body.model_validate({field: value})

    assert {error["loc"][0] for error in refused.value.errors()} == {field}


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "count": st.integers() | st.integers(-(2**40), 2**40).map(float),
            "share": st.none() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False),
            "on": st.none() | st.booleans(),
            "marks": st.lists(st.integers()),
            "limit": st.integers() | st.text(),
            "anything": st.booleans() | st.text() | st.integers(),
        },
    )
)
def test_a_value_of_its_kind_is_taken_as_it_is(values):
    taken = Body.model_validate(values)

    assert taken.model_dump(exclude_unset=True) == values


def test_a_body_that_is_no_object_is_pydantics_to_refuse():
    with pytest.raises(ValidationError):
        Body.model_validate([1])


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/collections", "GET, POST"), ("/v1/documents/doc_1", "DELETE, GET, PATCH, PUT"), ("/v1/ask", "POST")],
)
def test_a_method_that_is_not_there_is_told_every_one_that_is(client, path, allowed):
    response = client.request("OPTIONS", path)

    assert (response.status_code, response.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("role", [["user"], {"is": "user"}, 0, None])
def test_a_role_that_is_no_text_is_malformed(role):
    with pytest.raises(ValidationError, match="role"):
        ChatMessage.model_validate({"role": role, "content": "x"})


def test_the_metadata_of_a_new_version_are_looked_at_although_they_are_not_kept(client, state):
    document = client.post("/v1/documents", json={"text": "One.", "filename": "a.txt"}).json()
    refused = client.put(
        f"/v1/documents/{document['id']}", json={"text": "Two.", "filename": "a.txt", "metadata": {"a": [{}]}}
    )

    assert (refused.status_code, refused.json()["param"]) == (422, "metadata")
    assert not list((state.settings.data_dir / "files" / "incoming").iterdir())


def test_a_reconciliation_with_a_start_in_the_future_is_accepted(client):
    response = client.get("/v1/admin/usage/reconciliation", params={"start_time": 32503680000})

    assert response.status_code == 200, response.text
