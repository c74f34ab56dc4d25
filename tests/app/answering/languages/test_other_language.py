"""app.answering.languages.other_language: it is said where a question and what was found for it differ in language."""

import pytest

from app.answering.languages.other_language import OtherLanguage, other_language
from app.answering.languages.recognition import language_of
from app.answering.languages.table import languages
from tests.app.answering.languages.test_recognition import QUESTIONS
from tests.retrieval.fakes import ranked

ENGLISH = "The plant in Oslo was closed in May, and the staff of the plant moved to another town."
GERMAN = "Das Werk in Oslo wurde im Mai geschlossen, und die Belegschaft zog in eine andere Stadt."
UNCLEAR = "4,310 | 27 | ACME"
TABLE = "State | Seats | Event\nCeará | 22 | eleições\nGoiás | 17 | eleições\nBahia | 39 | ACME"


@pytest.mark.parametrize("code", sorted(set(languages()) - {"en"}))
def test_a_question_about_english_passages_is_told_so_in_its_own_language(code: str) -> None:
    note = other_language(QUESTIONS[code], ranked(ENGLISH, ENGLISH))

    assert note == OtherLanguage(languages()[code].texts.other_language.format(language="English"), "English")
    assert language_of(languages()[code].texts.other_language.format(language="")) == code


def test_an_english_question_is_told_the_language_of_the_passages() -> None:
    note = other_language(QUESTIONS["en"], ranked(GERMAN, UNCLEAR))

    assert note is not None
    assert "(Deutsch)" in note.text
    assert note.language == "Deutsch"


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (QUESTIONS["de"], (GERMAN,)),
        (QUESTIONS["de"], (GERMAN, ENGLISH)),
        (QUESTIONS["de"], (UNCLEAR,)),
        (QUESTIONS["de"], ()),
        ("4,310?", (ENGLISH,)),
    ],
)
def test_nothing_is_said_where_the_languages_are_equal_mixed_or_unclear(question: str, texts: tuple[str, ...]) -> None:
    assert other_language(question, ranked(*texts)) is None


def test_nothing_is_said_about_the_language_of_a_table() -> None:
    assert language_of(TABLE) not in (None, "en"), "its few letters look like another language"
    assert other_language("How many seats has the state of Goiás?", ranked(TABLE)) is None


def test_only_the_best_few_are_read() -> None:
    assert other_language(QUESTIONS["de"], ranked(ENGLISH, ENGLISH, ENGLISH, GERMAN)) is not None


@pytest.mark.parametrize("code", languages())
def test_every_note_names_the_language_of_the_passages(code: str) -> None:
    assert "{language}" in languages()[code].texts.other_language
