"""app.settings: which questions quotes answer and whether they follow generated answers are decided apart."""

import pytest

from app.settings import DEFAULT_GENERATOR, EXTRACTIVE, load_settings

LARGER = "/models/a-larger-one"


@pytest.mark.parametrize(
    ("generator", "answers", "first"),
    [
        (DEFAULT_GENERATOR, "auto", True),
        (DEFAULT_GENERATOR, "generated", False),
        (LARGER, "auto", False),
        (LARGER, "quotes", True),
        (EXTRACTIVE, "auto", False),
    ],
)
@pytest.mark.parametrize(
    ("unconfirmed", "behind"),
    [
        ("keep", frozenset[str]()),
        ("auto", frozenset({DEFAULT_GENERATOR})),
        ("quote", frozenset({DEFAULT_GENERATOR, LARGER})),
    ],
)
def test_each_of_the_two_settings_decides_one_thing(
    generator: str, answers: str, first: bool, unconfirmed: str, behind: frozenset[str]
) -> None:
    settings = load_settings(generator=generator, answers=answers, unconfirmed=unconfirmed)

    assert settings.quotes_first == first
    assert settings.quotes_unconfirmed == (generator in behind)
