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

    assert settings.quotes_first(settings.known_class or "writer") == first
    assert settings.quotes_unconfirmed == (generator in behind)


@pytest.mark.parametrize(
    ("generator", "remote", "chosen", "known"),
    [
        (DEFAULT_GENERATOR, "", "auto", "quotes"),
        (EXTRACTIVE, "", "auto", "quotes"),
        (LARGER, "", "auto", None),
        (DEFAULT_GENERATOR, "http://127.0.0.1:8001/v1", "auto", None),
        (LARGER, "", "quotes", "quotes"),
        (LARGER, "", "strong", "strong"),
    ],
)
def test_a_models_class_is_chosen_or_known_of_the_default_one_or_measured(
    generator: str, remote: str, chosen: str, known: str | None
) -> None:
    settings = load_settings(
        generator=generator, remote_url=remote, remote_model="m" if remote else "", model_class=chosen
    )

    assert settings.known_class == known


@pytest.mark.parametrize("model_class", ["quotes", "writer", "strong"])
def test_by_itself_the_class_decides_whether_quotes_come_first(model_class: str) -> None:
    assert load_settings(generator=LARGER).quotes_first(model_class) == (model_class == "quotes")
    assert not load_settings(generator=EXTRACTIVE).quotes_first(model_class)
    assert load_settings(generator=LARGER, answers="quotes").quotes_first(model_class)
    assert not load_settings(generator=LARGER, answers="generated").quotes_first(model_class)


@pytest.mark.parametrize("model_class", ["quotes", "writer", "strong"])
def test_by_itself_a_writer_alone_leaves_sure_quotes_as_they_are(model_class: str) -> None:
    assert load_settings(generator=LARGER).sure_quotes_answer(model_class) == (model_class == "writer")
    for answers in ("quotes", "generated"):
        assert not load_settings(generator=LARGER, answers=answers).sure_quotes_answer(model_class)
    assert not load_settings(generator=EXTRACTIVE).sure_quotes_answer(model_class)
