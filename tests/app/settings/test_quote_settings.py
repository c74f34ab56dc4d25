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
        ("auto", frozenset({DEFAULT_GENERATOR, LARGER})),
        ("quote", frozenset({DEFAULT_GENERATOR, LARGER})),
    ],
)
def test_each_of_the_two_settings_decides_one_thing(
    generator: str, answers: str, first: bool, unconfirmed: str, behind: frozenset[str]
) -> None:
    settings = load_settings(generator=generator, answers=answers, unconfirmed=unconfirmed)

    assert settings.quotes_first == first
    assert settings.quotes_unconfirmed == (generator in behind)


@pytest.mark.parametrize(
    ("generator", "remote", "chosen", "served"),
    [
        (DEFAULT_GENERATOR, "", "auto", "quotes"),
        (EXTRACTIVE, "", "auto", "quotes"),
        (LARGER, "", "auto", "writer"),
        (DEFAULT_GENERATOR, "http://127.0.0.1:8001/v1", "auto", "writer"),
        (LARGER, "", "quotes", "quotes"),
        (LARGER, "", "strong", "strong"),
    ],
)
def test_a_models_class_is_chosen_or_follows_from_what_is_served(
    generator: str, remote: str, chosen: str, served: str
) -> None:
    settings = load_settings(
        generator=generator, remote_url=remote, remote_model="m" if remote else "", model_class=chosen
    )

    assert settings.served_class == served
    assert settings.quotes_first == (served == "quotes" and generator != EXTRACTIVE)
