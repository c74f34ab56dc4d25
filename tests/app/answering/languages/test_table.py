"""app.answering.languages.table: each language is one file, and what the file says holds."""

import re
from typing import Any

import pytest

from app.answering.languages.recognition import language_of
from app.answering.languages.table import Wish, languages, read_language
from tests.patterns.slow import slow_texts
from tests.patterns.sources import Use

PATTERNS = [
    (code, wish, pattern)
    for code, language in languages().items()
    if language.replies is not None
    for wish, pattern in language.replies.asked.items()
]
PORTUGUESE: dict[str, Any] = {
    "name": "Portuguese",
    "own_name": "português",
    "denials": ["as fontes não"],
    "contrasts": "mas no_entanto",
    "texts": {
        "no_evidence": "Nada.",
        "refusal": "Não sei.",
        "unsure": "Talvez:",
        "other_language": "({language})",
        "sources_disagree": "!",
    },
}


def test_english_is_first() -> None:
    assert next(iter(languages())) == "en"


@pytest.mark.parametrize("code", languages())
def test_a_language_is_recognised_by_its_words_its_letters_or_its_script(code: str) -> None:
    language = languages()[code]

    assert bool(language.scripts) != bool(language.words)
    assert re.fullmatch("[a-z]{2}", language.code)
    assert language_of(language.texts.unsure) == code


@pytest.mark.parametrize("code", languages())
def test_words_are_case_folded_as_the_texts_that_they_are_looked_for_in(code: str) -> None:
    assert {word for word in languages()[code].words if word != word.casefold()} == set()


def test_replies_are_to_every_wish() -> None:
    talking = [language.replies for language in languages().values() if language.replies is not None]

    assert talking
    assert all(replies.asked.keys() == {*Wish} for replies in talking)


@pytest.mark.parametrize(("code", "wish", "pattern"), PATTERNS)
def test_small_talk_is_recognised_in_linear_time(code: str, wish: Wish, pattern: "re.Pattern[str]") -> None:
    assert list(slow_texts(Use(f"{code}.toml {wish}", pattern, frozenset({"fullmatch"})))) == []


@pytest.mark.parametrize("code", languages())
def test_a_refusal_in_other_words_is_recognised_in_linear_time(code: str) -> None:
    language = languages()[code]

    assert list(slow_texts(Use(f"{code}.toml denials", language.denials, frozenset({"match"})))) == []
    assert list(slow_texts(Use(f"{code}.toml contrasts", language.contrasts, frozenset({"search"})))) == []


def test_patterns_are_case_folded_apart_from_classes_of_characters() -> None:
    read = read_language("pt", {**PORTUGUESE, "denials": [r"AS \w+ \S+ Não"]})

    assert read.denials.match("as fontes citadas não dizem")
    assert [bool(read.contrasts.search(text)) for text in ("a, mas b", "no entanto", "masa", "entanto")] == [
        *(True, True, False, False)
    ]


def test_a_language_is_what_its_file_says() -> None:
    read = read_language("pt", {**PORTUGUESE, "words": "não sei"})

    assert (read.code, read.words, read.replies) == ("pt", frozenset({"não", "sei"}), None)


@pytest.mark.parametrize("wrong", [{"wrods": "o a"}, {"texts": {"refusal": "Não sei."}}, {"denials": None}])
def test_a_key_that_is_misspelt_or_missing_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError)):
        read_language("pt", PORTUGUESE | wrong)
