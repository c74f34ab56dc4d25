"""/v1/models says what answers questions: quotes of the documents, or the language model's words."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.application import create_app
from tests.faults.metered import metered
from tests.server import ADMIN_KEY


@pytest.mark.parametrize(
    ("settings", "answers"),
    [
        ({}, "quotes"),
        ({"answers": "generated"}, "generated"),
        ({"model_class": "writer"}, "generated"),
        ({"generator": "extractive"}, "quotes"),
    ],
)
def test_a_model_says_what_answers_and_the_embedder_does_not(
    settings: dict[str, Any], answers: str, tmp_path: Path
) -> None:
    with (
        metered(tmp_path, **settings) as state,
        TestClient(create_app(lambda: nullcontext(state), version="0")) as http,
    ):
        listed = http.get("/v1/models", headers={"Authorization": f"Bearer {ADMIN_KEY}"}).json()["data"]

    assert [model["answers"] for model in listed] == [answers, None]
