"""A 422 is small and costs little, however much is wrong with a body."""

import json
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.field_problems import FieldProblems
from app.api.gate.body_limits import MIB
from app.api.schemas.search import SearchRequest
from app.api.schemas.unknown_fields import refuse_many_unknown

LARGEST = 16 * 1024
JSON = {"Content-Type": "application/json"}


def unknown(count: int) -> bytes:
    return json.dumps({f"x{number}": 1 for number in range(count)}).encode()


def test_unknown_fields_are_named_up_to_20_and_then_counted(client):
    refused = client.post("/v1/conversations", content=unknown(25_000), headers=JSON)

    problem = refused.json()
    assert refused.status_code == 422
    assert len(refused.content) <= LARGEST
    assert [item["field"] for item in problem["errors"]] == [f"x{number}" for number in range(20)]
    assert problem["more_errors"] == 24_980
    assert problem["detail"].endswith("and 24980 more")


def test_twenty_unknown_fields_are_all_named(client):
    problem = client.post("/v1/conversations", content=unknown(20), headers=JSON).json()

    assert len(problem["errors"]) == 20
    assert "more_errors" not in problem


@pytest.mark.parametrize(
    "body",
    [
        {"k" * 900_000: 1},
        {"\x01" * 100_000: 1},
        {"😀" * 100_000 + str(number): 1 for number in range(2)},
        {"key\n" * 20 + str(number): 1 for number in range(30)},
        {"name": "n", "role": "r" * 500_000, "collections": [1] * 90_000},
    ],
    ids=["a long name", "control characters", "astral characters", "many", "long values"],
)
@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/vector_stores", "/v1/admin/keys"])
def test_the_answer_to_a_bad_body_is_small(client, path, body):
    refused = client.post(path, content=json.dumps(body, ensure_ascii=False).encode(), headers=JSON)

    assert refused.status_code in {400, 422}
    assert len(refused.content) <= LARGEST


def test_of_thirty_short_problems_twenty_are_named():
    found = FieldProblems.of([{"type": "value_error", "loc": ("body", "a"), "msg": "b"}] * 30)

    assert (len(found.errors), found.more) == (20, 10)


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=2_000)), max_size=60))
def test_no_problems_make_a_large_answer(items):
    found = FieldProblems.of([{"type": "value_error", "loc": ("body", name), "msg": said} for name, said in items])

    assert len(found.errors) <= 20
    assert len(found.errors) + found.more == len(items)
    assert len(json.dumps([found.errors, found.detail, found.detail, found.param])) <= LARGEST


def test_1_mib_of_unknown_fields_does_not_cost_a_second():
    fields = dict.fromkeys((f"{number:x}" for number in range(MIB // 8)), 1)

    began = time.process_time()
    with pytest.raises(ValueError, match="more fields are not permitted"):
        refuse_many_unknown(fields, SearchRequest)
    with pytest.raises(ValueError, match="more fields are not permitted"):
        SearchRequest.model_validate({**fields, "query": string.ascii_letters})

    assert time.process_time() - began < 0.5
