"""Says that a question is in another language than the passages that were found for it.

The default embedder and reader know English, so a German question about English documents is refused although they
may answer it. Nothing is said unless both languages are clear.

Example:
    >>> other_language("Wann wurde das Werk geschlossen?", hits)
    'Die gefundenen Textstellen sind in einer anderen Sprache (English). Stellen Sie die Frage in dieser Sprache.'
"""

from collections.abc import Sequence

from app.answering.language import ENGLISH, language_of, language_of_prose
from retrieval.types import Hit

_READ = 3  # the best hits whose language is recognised

OWN_NAMES = {
    ENGLISH: "English",
    "ar": "العربية",
    "de": "Deutsch",
    "el": "Ελληνικά",
    "es": "español",
    "fr": "français",
    "hi": "हिन्दी",
    "it": "italiano",
    "ja": "日本語",
    "ko": "한국어",
    "nl": "Nederlands",
    "pt": "português",
    "ro": "română",
    "ru": "русский",
    "th": "ไทย",
    "tr": "Türkçe",
    "vi": "Tiếng Việt",
    "zh": "中文",
}
"""The name of each of `language.LANGUAGES` in that language itself."""

NOTES = {
    ENGLISH: "The passages that were found are in another language ({language}). Ask in that language.",
    "ar": "المقاطع التي عُثر عليها مكتوبة بلغة أخرى ({language}). اطرح السؤال بتلك اللغة.",
    "de": "Die gefundenen Textstellen sind in einer anderen Sprache ({language}). Stellen Sie die Frage in dieser "
    "Sprache.",
    "el": "Τα αποσπάσματα που βρέθηκαν είναι σε άλλη γλώσσα ({language}). Κάντε την ερώτηση σε αυτή τη γλώσσα.",
    "es": "Los pasajes encontrados están en otro idioma ({language}). Haga la pregunta en ese idioma.",
    "fr": "Les passages trouvés sont dans une autre langue ({language}). Posez la question dans cette langue.",
    "hi": "मिले हुए अंश दूसरी भाषा ({language}) में हैं। उसी भाषा में प्रश्न पूछें।",
    "it": "I passaggi trovati sono in un'altra lingua ({language}). Faccia la domanda in quella lingua.",
    "ja": "見つかった箇所は別の言語（{language}）で書かれています。その言語で質問してください。",
    "ko": "찾은 구절은 다른 언어({language})로 되어 있습니다. 그 언어로 질문해 주세요.",
    "nl": "De gevonden passages zijn in een andere taal ({language}). Stel de vraag in die taal.",
    "pt": "As passagens encontradas estão noutra língua ({language}). Faça a pergunta nessa língua.",
    "ro": "Pasajele găsite sunt într-o altă limbă ({language}). Puneți întrebarea în acea limbă.",
    "ru": "Найденные фрагменты написаны на другом языке ({language}). Задайте вопрос на этом языке.",
    "th": "ข้อความที่พบเป็นภาษาอื่น ({language}) โปรดถามเป็นภาษานั้น",
    "tr": "Bulunan bölümler başka bir dilde ({language}). Soruyu o dilde sorun.",
    "vi": "Các đoạn được tìm thấy viết bằng một ngôn ngữ khác ({language}). Hãy đặt câu hỏi bằng ngôn ngữ đó.",
    "zh": "找到的段落是用另一种语言（{language}）写的。请用该语言提问。",
}
"""The note in each of `language.LANGUAGES`; `{language}` is the name of the passages' language."""


def other_language(question: str, hits: Sequence[Hit]) -> str:
    """The note, in the question's language; "" where the languages are equal or not clear.

    Args:
        question: As it was searched for.
        hits: Best first, evidence or not; the best few must be in one recognised language.
    """
    asked = language_of(question)
    found = {language_of_prose(hit.chunk.text) for hit in hits[:_READ]} - {None}
    if asked is None or len(found) != 1 or asked in found:
        return ""
    (language,) = found
    return NOTES[asked].format(language=OWN_NAMES[language or ENGLISH])
