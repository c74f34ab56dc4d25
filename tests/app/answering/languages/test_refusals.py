"""app.answering.languages.refusals: Footnote refuses in the language of the question, and recognises a refusal."""

import pytest

from app.answering.generating.wording import Wording
from app.answering.languages.recognition import language_of
from app.answering.languages.refusals import denies, no_evidence, refusal, refuses, unsure
from app.answering.languages.table import REFUSAL, languages
from tests.app.answering.languages.test_recognition import QUESTIONS


@pytest.mark.parametrize("code", languages())
def test_footnotes_own_sentences_are_in_the_questions_language(code: str) -> None:
    asked = QUESTIONS[code]

    assert no_evidence(asked) == languages()[code].texts.no_evidence
    assert refusal(asked) == languages()[code].texts.refusal
    assert language_of(no_evidence(asked)) == code
    assert refuses(refusal(asked), cited=False)
    assert not refuses(asked, cited=False)


def test_the_english_refusal_is_what_the_prompt_asks_for() -> None:
    assert languages()["en"].texts.refusal == REFUSAL
    assert REFUSAL in Wording().system
    assert REFUSAL in Wording().reminder


@pytest.mark.parametrize("code", languages())
def test_the_sentence_above_the_nearest_passages_is_in_the_questions_language_and_no_refusal(code: str) -> None:
    sentence = languages()[code].texts.unsure

    assert unsure(QUESTIONS[code]) == sentence
    assert language_of(sentence) == code
    assert not refuses(sentence, cited=True)
    assert not refuses(sentence, cited=False)


@pytest.mark.parametrize("answer", ["I don’t know.", " i don't know, sorry", "Ich weiß es nicht", "No lo sé. [1]"])
def test_a_refusal_is_recognised_however_it_is_typed(answer: str) -> None:
    assert refuses(answer, cited=False)


@pytest.mark.parametrize("answer", ["", "Revenue rose.", "He said: I don't know.", "Nu"])
def test_an_answer_is_no_refusal(answer: str) -> None:
    assert not refuses(answer, cited=False)


@pytest.mark.parametrize(
    "text", ["I don't know.[1]", "I don’t know [2]", "i don't know. [1] [3]", "Das weiß ich nicht. [1]"]
)
def test_a_refusal_is_one_also_with_a_marker_behind_it(text: str) -> None:
    assert refuses(text, cited=True) == refuses(text, cited=False)
    assert refuses(f"{text} The plant closed in May [2].", cited=True) is False


@pytest.mark.parametrize("code", languages())
def test_every_languages_refusal_is_one(code: str) -> None:
    assert refuses(languages()[code].texts.refusal, cited=True)
    assert refuses(f"{languages()[code].texts.refusal} [1]", cited=True)


DENIALS = {
    "en": "The sources do not mention when the plant closed. There is no information about it.",
    "de": "Die Quellen enthalten keine Angaben dazu, wann das Werk geschlossen wurde.",
    "fr": "Les sources ne mentionnent pas la date de fermeture de l'usine.",
    "es": "Las fuentes no mencionan cuándo se cerró la planta.",
    "it": "Le fonti non indicano quando lo stabilimento è stato chiuso.",
    "pt": "As fontes não mencionam quando a fábrica foi fechada.",
    "nl": "De bronnen vermelden niet wanneer de fabriek is gesloten.",
    "ro": "Sursele nu menționează când a fost închisă fabrica.",
    "tr": "Kaynaklarda fabrikanın ne zaman kapatıldığı belirtilmemiştir.",
    "ru": "В источниках не указано, когда завод был закрыт.",
    "el": "Οι πηγές δεν αναφέρουν πότε έκλεισε το εργοστάσιο.",
    "ar": "لا تذكر المصادر متى أغلق المصنع.",
    "hi": "स्रोतों में यह नहीं बताया गया है कि संयंत्र कब बंद हुआ।",
    "ja": "資料には工場がいつ閉鎖されたかは記載されていません。",
    "zh": "资料中没有提到工厂何时关闭。",
    "ko": "제공된 자료에는 공장이 언제 문을 닫았는지 나와 있지 않습니다.",
    "vi": "Các nguồn không nêu khi nào nhà máy đóng cửa.",
    "th": "เอกสารไม่ได้ระบุว่าโรงงานปิดเมื่อใด",
}
"""What a model says in its own words where its sources do not answer."""

ANSWERS = {
    "en": "The plant closed on 4 May and did not open again. [1]",
    "de": "Das Werk wurde am 4. Mai geschlossen und nicht wieder geöffnet.",
    "fr": "L'usine a fermé le 4 mai et n'a pas rouvert.",
    "es": "La planta cerró el 4 de mayo y no volvió a abrir.",
    "it": "Lo stabilimento ha chiuso il 4 maggio e non ha più riaperto.",
    "pt": "A fábrica fechou em 4 de maio e não voltou a abrir.",
    "nl": "De fabriek sloot op 4 mei en ging niet meer open.",
    "ro": "Fabrica s-a închis la 4 mai și nu s-a mai deschis.",
    "tr": "Fabrika 4 Mayıs'ta kapandı ve yeniden açılmadı.",
    "ru": "Завод закрылся 4 мая и больше не открывался.",
    "el": "Το εργοστάσιο έκλεισε στις 4 Μαΐου και δεν άνοιξε ξανά.",
    "ar": "أغلق المصنع في 4 مايو ولم يفتح مرة أخرى.",
    "hi": "संयंत्र 4 मई को बंद हुआ और फिर नहीं खुला।",
    "ja": "工場は5月4日に閉鎖され、再開していません。",
    "zh": "工厂于5月4日关闭，此后没有重新开放。",
    "ko": "공장은 5월 4일에 문을 닫았고 다시 열지 않았습니다.",
    "vi": "Nhà máy đóng cửa ngày 4 tháng 5 và không mở lại.",
    "th": "โรงงานปิดเมื่อวันที่ 4 พฤษภาคม และไม่เปิดอีก",
}


@pytest.mark.parametrize("code", languages())
def test_a_refusal_in_other_words_is_recognised_and_a_negated_answer_is_none(code: str) -> None:
    assert denies(DENIALS[code])
    assert denies(f"{DENIALS[code]} [1][2]")
    assert not denies(ANSWERS[code])
    assert not denies(f"{DENIALS[code]}\n\n{ANSWERS[code]}")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The sources do not name a day, but they say that the plant closed in May.",
        "The contract does not mention a penalty.",
        "There is no fee for members.",
        "Nobody knows who founded it.",
        "Sources of revenue grew.",
    ],
)
def test_an_answer_that_denies_something_else_is_an_answer(answer: str) -> None:
    assert not denies(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot find the answer in the provided documents.",
        "Unfortunately, the documents don't say who founded it [2].",
        "It is not specified.",
        "There is no mention of a fee in the sources.",
        "None of the sources state this. I don't know.",
        "Not mentioned in the sources.",
        "The provided sources do not contain any information about Mars.",
    ],
)
def test_english_denials(answer: str) -> None:
    assert denies(answer)
