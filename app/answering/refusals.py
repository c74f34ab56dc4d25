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
