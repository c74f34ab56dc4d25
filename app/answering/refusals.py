"""The texts with which Footnote refuses to answer, in each language, and the test whether a text is a refusal.

`app.answering.abstention` decides when one of them is shown.

Example:
    >>> refusal("Wann wurde das Werk geschlossen?")
    'Ich weiß es nicht.'
    >>> refuses("I don't know. [1]", cited=True)
    True
"""

import unicodedata
from dataclasses import dataclass

from app.answering.language import ENGLISH, language_of
from retrieval.footnote_numbers import without_markers

NO_EVIDENCE = "The documents do not hold an answer to this question."
REFUSAL = "I don't know."
"""The English refusal. The prompt asks the model for exactly these words (`Wording`)."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """The refusals in one language.

    Attributes:
        no_evidence: Shown where no passage was found that is about the question; no model was called.
        refusal: Shown where passages were read and hold no answer; a model may also write it.
    """

    no_evidence: str
    refusal: str


REFUSALS = {
    ENGLISH: Refusals(NO_EVIDENCE, REFUSAL),
    "ar": Refusals("لا تحتوي المستندات على إجابة عن هذا السؤال.", "لا أعرف."),
    "de": Refusals("Die Dokumente enthalten keine Antwort auf diese Frage.", "Ich weiß es nicht."),
    "el": Refusals("Τα έγγραφα δεν περιέχουν απάντηση σε αυτή την ερώτηση.", "Δεν γνωρίζω."),
    "es": Refusals("Los documentos no contienen una respuesta a esta pregunta.", "No lo sé."),
    "fr": Refusals("Les documents ne contiennent pas de réponse à cette question.", "Je ne sais pas."),
    "hi": Refusals("दस्तावेज़ों में इस प्रश्न का उत्तर नहीं है।", "मुझे नहीं पता।"),
    "it": Refusals("I documenti non contengono una risposta a questa domanda.", "Non lo so."),
    "ja": Refusals("文書にはこの質問への回答がありません。", "わかりません。"),
    "ko": Refusals("문서에 이 질문에 대한 답이 없습니다.", "모르겠습니다."),
    "nl": Refusals("De documenten bevatten geen antwoord op deze vraag.", "Ik weet het niet."),
    "pt": Refusals("Os documentos não contêm uma resposta a esta pergunta.", "Não sei."),
    "ro": Refusals("Documentele nu conțin un răspuns la această întrebare.", "Nu știu."),
    "ru": Refusals("В документах нет ответа на этот вопрос.", "Я не знаю."),
    "th": Refusals("เอกสารไม่มีคำตอบสำหรับคำถามนี้", "ฉันไม่ทราบ"),
    "tr": Refusals("Belgelerde bu sorunun yanıtı yok.", "Bilmiyorum."),
    "vi": Refusals("Các tài liệu không có câu trả lời cho câu hỏi này.", "Tôi không biết."),
    "zh": Refusals("文档中没有这个问题的答案。", "我不知道。"),
}
"""The refusals in each of `language.LANGUAGES`, by its code."""


def no_evidence(question: str) -> str:
    """The text shown where nothing was found, in the question's language; English where that is not clear."""
    return REFUSALS[language_of(question) or ENGLISH].no_evidence


def refusal(question: str) -> str:
    """The text shown where the sources hold no answer, in the question's language; English where that is not clear."""
    return REFUSALS[language_of(question) or ENGLISH].refusal


UNSURE = {
    ENGLISH: "The documents do not clearly answer this. These passages are the nearest:",
    "ar": "لا تجيب المستندات عن هذا بوضوح. هذه أقرب المقاطع:",
    "de": "Die Dokumente beantworten das nicht eindeutig. Diese Stellen kommen dem am nächsten:",
    "el": "Τα έγγραφα δεν απαντούν ξεκάθαρα σε αυτό. Αυτά είναι τα πλησιέστερα αποσπάσματα:",
    "es": "Los documentos no responden claramente a esto. Estos son los pasajes más cercanos:",
    "fr": "Les documents n'y répondent pas clairement. Voici les passages les plus proches :",
    "hi": "दस्तावेज़ इसका स्पष्ट उत्तर नहीं देते। ये सबसे निकट के अंश हैं:",
    "it": "I documenti non rispondono chiaramente a questa domanda. Questi sono i passaggi più vicini:",
    "ja": "文書からは明確な答えが得られません。最も近い箇所は次のとおりです：",
    "ko": "문서가 이 질문에 명확히 답하지 않습니다. 가장 가까운 구절은 다음과 같습니다:",
    "nl": "De documenten beantwoorden dit niet duidelijk. Deze passages komen het dichtst in de buurt:",
    "pt": "Os documentos não respondem claramente a isto. Estas são as passagens mais próximas:",
    "ro": "Documentele nu răspund clar la aceasta. Acestea sunt cele mai apropiate pasaje:",
    "ru": "Документы не дают на это ясного ответа. Вот ближайшие отрывки:",
    "th": "เอกสารไม่ได้ตอบเรื่องนี้อย่างชัดเจน ข้อความที่ใกล้เคียงที่สุดมีดังนี้:",
    "tr": "Belgeler buna açık bir yanıt vermiyor. En yakın bölümler şunlar:",
    "vi": "Các tài liệu không trả lời rõ điều này. Đây là những đoạn gần nhất:",
    "zh": "文档没有明确回答这个问题。以下是最接近的段落：",
}
"""The sentence above passages that may not answer, in each of `language.LANGUAGES`, by its code."""


def unsure(question: str) -> str:
    """The sentence above the nearest passages, in the question's language; English where that is not clear."""
    return UNSURE[language_of(question) or ENGLISH]


def refuses(answer: str, *, cited: bool) -> bool:
    """Whether an answer is a refusal, in whichever language and however it is typed.

    Args:
        answer: The generated text, footnotes included.
        cited: Whether the answer has citations. Then it is a refusal only if it holds nothing else but markers: an
            answer that begins with a refusal, goes on and cites is an answer. Without citations the beginning decides.
    """
    if cited:
        return _folded(without_markers(answer)).rstrip(".。। ") in _FOLDED_REFUSALS
    return _folded(answer).startswith(_FOLDED_REFUSALS)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold().replace("’", "'")


_FOLDED_REFUSALS = tuple(_folded(texts.refusal).rstrip(".。।") for texts in REFUSALS.values())
