"""app.server.assembly.strategies: what answers follows from the settings and from how well the model reads."""

from typing import Any, cast

import pytest

from app.answering.generating.model_class import ModelClass
from app.answering.generating.strategy import Generating
from app.answering.quoting.strategy import Quoting
from app.server.assembly import strategies
from app.settings import load_settings

QUOTES = cast(Quoting, "quotes")


def by(model_class: ModelClass) -> Generating:
    return cast(Generating, f"a {model_class}")


@pytest.mark.parametrize(
    ("settings", "model_class", "expected"),
    [
        ({}, ModelClass.QUOTES, ("quotes", "a quotes")),
        ({}, ModelClass.WRITER, ("a writer",)),
        ({}, ModelClass.STRONG, ("a strong",)),
        ({"answers": "generated"}, ModelClass.QUOTES, ("a quotes",)),
        ({"answers": "quotes"}, ModelClass.WRITER, ("quotes", "a writer")),
        ({"generator": "extractive"}, ModelClass.QUOTES, ("quotes",)),
    ],
)
def test_the_first_that_can_answer_does(
    settings: dict[str, Any], model_class: ModelClass, expected: tuple[str, ...]
) -> None:
    found: object = strategies(load_settings(**settings), model_class, QUOTES, by)
    assert found == expected
