"""app.probing.reading: replies become shares, and shares a class."""

from dataclasses import replace

import pytest

from app.answering.generating.model_class import ModelClass
from app.answering.languages.refusals import refusal
from app.probing.cases import ProbeCase, cases
from app.probing.reading import ModelReading, Share
from tests.app.probing.test_cases import reply_to


def right(case: ProbeCase) -> tuple[ProbeCase, str]:
    return case, reply_to(case) if case.answer else refusal(case.question)


BEST = ModelReading.of(map(right, cases()))


def test_a_model_that_is_always_right_reads_everything() -> None:
    assert (BEST.reads, BEST.joins, BEST.forms) == (Share(20, 20), Share(8, 8), Share(4, 4))
    assert (BEST.refuses, BEST.declines) == (Share(0, 28), Share(8, 8))
    assert BEST.model_class is ModelClass.STRONG


def test_a_model_that_always_refuses_reads_nothing_and_declines_everything() -> None:
    found = ModelReading.of((case, refusal(case.question)) for case in cases())

    assert found == ModelReading(
        reads=Share(0, 20), joins=Share(0, 8), forms=Share(0, 4), refuses=Share(28, 28), declines=Share(8, 8)
    )
    assert found.model_class is ModelClass.QUOTES


def test_a_model_that_says_one_thing_to_everything_is_of_the_lowest_class() -> None:
    found = ModelReading.of((case, "The sources say 5 euros and 3 days [1].") for case in cases())

    assert found.declines == Share(0, 8)
    assert found.model_class is ModelClass.QUOTES


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"reads": Share(19, 20)}, ModelClass.STRONG),
        ({"reads": Share(18, 20)}, ModelClass.WRITER),
        ({"joins": Share(7, 8)}, ModelClass.STRONG),
        ({"joins": Share(6, 8)}, ModelClass.WRITER),
        ({"forms": Share(3, 4)}, ModelClass.STRONG),
        ({"forms": Share(2, 4)}, ModelClass.WRITER),
        ({"declines": Share(0, 8)}, ModelClass.STRONG),
        ({"reads": Share(10, 20), "joins": Share(0, 8), "forms": Share(0, 4)}, ModelClass.WRITER),
        ({"reads": Share(9, 20)}, ModelClass.QUOTES),
        ({"refuses": Share(7, 28)}, ModelClass.STRONG),
        ({"refuses": Share(8, 28)}, ModelClass.QUOTES),
    ],
)
def test_the_class_follows_from_what_it_reads_joins_and_refuses(
    changed: dict[str, Share], expected: ModelClass
) -> None:
    assert replace(BEST, **changed).model_class is expected


def test_the_two_models_that_the_bounds_were_set_between_are_on_their_sides() -> None:
    half_billion = replace(BEST, reads=Share(4, 20), joins=Share(1, 8), forms=Share(1, 4), refuses=Share(11, 28))
    larger = replace(BEST, reads=Share(14, 20), joins=Share(4, 8), forms=Share(1, 4), refuses=Share(4, 28))

    assert half_billion.model_class is ModelClass.QUOTES
    assert larger.model_class is ModelClass.WRITER


def test_a_share_of_nothing_is_nothing() -> None:
    assert Share(0, 0).value == 0.0
