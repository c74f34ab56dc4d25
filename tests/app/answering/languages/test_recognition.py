"""app.answering.languages.recognition recognises the language of a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.languages.recognition import answer_in, language_of
from app.answering.languages.table import languages

QUESTIONS = {
    "en": "How did revenue develop in the second quarter?",
    "ar": "كم عدد السكان في المدينة؟",
    "de": "Wie hat sich der Umsatz im zweiten Quartal entwickelt?",
    "el": "Πώς εξελίχθηκαν τα έσοδα;",
    "es": "¿Cómo evolucionaron los ingresos en el segundo trimestre?",
    "fr": "Comment le chiffre d'affaires a-t-il évolué au deuxième trimestre ?",
    "hi": "दूसरी तिमाही में राजस्व कैसा रहा?",
    "it": "Come si sono sviluppati i ricavi nel secondo trimestre?",
    "ja": "第2四半期の売上はどうなりましたか？",
    "ko": "2분기 매출은 어떻게 되었습니까?",
    "nl": "Hoe heeft de omzet zich in het tweede kwartaal ontwikkeld?",
    "pt": "Como evoluíram as receitas no segundo trimestre?",
    "ro": "Cum au evoluat veniturile în al doilea trimestru?",
    "ru": "Как изменилась выручка во втором квартале?",
    "th": "รายได้ในไตรมาสที่สองเป็นอย่างไร",
    "tr": "İkinci çeyrekte gelir nasıl değişti?",
    "vi": "Doanh thu trong quý hai thay đổi như thế nào?",
    "zh": "第二季度收入如何变化？",
}


@pytest.mark.parametrize("code", languages())
def test_a_question_is_told_by_its_language(code: str) -> None:
    assert language_of(QUESTIONS[code]) == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42?",
        "Northwind 2025",
        "Диета Diets",  # half and half
        "Коли було засновано місто?",  # Ukrainian, which has no sentences here
        "جمعیت شهر چقدر است؟",  # Persian
        "🙂🙂",
    ],
)
def test_what_says_too_little_or_is_not_known_has_no_language(text: str) -> None:
    assert language_of(text) is None
    assert answer_in(text) == ""


@pytest.mark.parametrize(
    "question",
    ["When was Darüşşafaka founded?", "Who was Luis Telmo Paz y Miño Estrella?", "What's Café de la Paix?"],
)
def test_a_foreign_name_does_not_make_an_english_question_foreign(question: str) -> None:
    assert language_of(question) in {"en", None}
    assert answer_in(question) == ""


def test_latin_names_in_a_question_without_spaces_do_not_make_it_english() -> None:
    assert language_of("Denver Broncos的防守组在超级碗中迫使多少次失误？") == "zh"


def test_an_english_question_needs_no_instruction() -> None:
    assert answer_in(QUESTIONS["en"]) == ""
    assert answer_in(QUESTIONS["de"]) == "Answer in German."


@given(text=st.text())
def test_any_text_has_a_language_of_the_table_or_none(text: str) -> None:
    assert language_of(text) in {None, *languages()}
