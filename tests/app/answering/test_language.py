"""app.answering.language tells a question's language, and says Footnote's own sentences in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.language import LANGUAGES, answer_in, is_bare_refusal, is_refusal, language_of, no_evidence, refusal
from app.answering.wording import REFUSAL

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


@pytest.mark.parametrize("code", LANGUAGES)
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


@pytest.mark.parametrize("code", LANGUAGES)
def test_footnotes_own_sentences_are_in_the_questions_language(code: str) -> None:
    asked = QUESTIONS[code]

    assert no_evidence(asked) == LANGUAGES[code].no_evidence
    assert refusal(asked) == LANGUAGES[code].refusal
    assert language_of(no_evidence(asked)) == code
    assert is_refusal(refusal(asked))
    assert not is_refusal(asked)


def test_the_english_refusal_is_what_the_prompt_asks_for() -> None:
    assert LANGUAGES["en"].refusal == REFUSAL


@pytest.mark.parametrize("answer", ["I don’t know.", " i don't know, sorry", "Ich weiß es nicht", "No lo sé. [1]"])
def test_a_refusal_is_recognised_however_it_is_typed(answer: str) -> None:
    assert is_refusal(answer)


@pytest.mark.parametrize("answer", ["", "Revenue rose.", "He said: I don't know.", "Nu"])
def test_an_answer_is_no_refusal(answer: str) -> None:
    assert not is_refusal(answer)


@given(text=st.text())
def test_any_text_has_a_language_of_the_table_or_none(text: str) -> None:
    assert language_of(text) in {None, *LANGUAGES}


@pytest.mark.parametrize(
    "text", ["I don't know.[1]", "I don’t know [2]", "i don't know. [1] [3]", "Das weiß ich nicht. [1]"]
)
def test_a_refusal_is_one_also_with_a_marker_behind_it(text: str) -> None:
    assert is_bare_refusal(text) == is_refusal(text)
    assert is_bare_refusal(f"{text} The plant closed in May [2].") is False


@pytest.mark.parametrize("code", sorted(LANGUAGES))
def test_every_languages_refusal_is_one(code: str) -> None:
    assert is_bare_refusal(LANGUAGES[code].refusal)
    assert is_bare_refusal(f"{LANGUAGES[code].refusal} [1]")
