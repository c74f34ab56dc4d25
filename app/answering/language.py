"""Recognises the language of a question.

The script decides, and within the Latin script function words and letters that few languages share. No model is
loaded. A text that is too short or mixed has no language, and is answered in English.

Example:
    >>> language_of("Wann wurde das Werk geschlossen?")
    'de'
"""

import re
import unicodedata
from collections import Counter

from retrieval.memo import remembered

ENGLISH = "en"

_WORD = re.compile(r"[^\W\d_]+")
# A Latin word has about five letters, a word of a script without spaces about two characters.
_WORD_OF_UNSPACED = 3
_LETTER_WEIGHT = 2  # a letter that few languages use is better evidence than a short word that several share
_PROSE_SHARE = 0.1  # of a passage's words that are function words, at least


LANGUAGES = {
    ENGLISH: "English",
    "ar": "Arabic",
    "de": "German",
    "el": "Greek",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
"""The languages Footnote recognises and answers in: ISO 639-1 code to English name."""

# Scripts that one language of the table uses, by the first word of a character's Unicode name.
_SCRIPTS = {
    "ARABIC": "ar",
    "GREEK": "el",
    "DEVANAGARI": "hi",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "CYRILLIC": "ru",
    "THAI": "th",
    "CJK": "zh",
}
_UNSPACED = frozenset({"th", "zh"})
_KANA = re.compile("[\u3041-\u30ff]")
# Letters of other languages in these scripts, which Arabic and Russian lack (Persian, Urdu; Ukrainian, Serbian …).
_FOREIGN = frozenset("پچژگٹڈڑےکی" + "іїєґўђћџљњјѓќѕ")

_FUNCTION_WORDS = {
    ENGLISH: """the of and in to is was are were what which who whom whose when where why how did does do has have had
        for on at by with from that this these their his her it its as be been can could would not than many much a an
        about after before between during into there they you or if""",
    "de": """der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird wurde wurden was
        wer wen wem wessen wann wo wie warum welche welcher welches welchen welchem in im von vom zu zum zur mit auf für
        bei nach aus durch über unter nicht auch als wie viele hat haben hatte es sich an am um""",
    "es": """el la los las un una unos unas de del y o que qué quién quiénes cuál cuáles cuándo dónde cómo cuánto
        cuántos cuántas por para con sin sobre entre en al se su sus es son era eran fue fueron ha han no lo a como más
        cuanto cuantos cuando donde quien cual""",
    "fr": """le la les un une des du de et ou que qui quoi quel quelle quels quelles quand où comment pourquoi
        combien est sont était étaient fut a ont avait dans en sur sous par pour avec sans entre au aux ce cette ces il
        elle ils elles ne pas se son sa ses leur leurs à""",
    "it": """il lo la i gli le un uno una di del dello della dei degli delle e o che chi quale quali quando dove come
        perché quanto quanti quante è sono era erano fu furono ha hanno in nel nella nei nelle su sul sulla per con tra
        fra da dal dalla al alla non si suo sua cosa""",
    "nl": """de het een en of is zijn was waren wat wie welke welk wanneer waar waarom hoe hoeveel van voor met op aan
        bij uit door over onder naar tot niet ook als er heeft hebben had werd werden dat dit die deze om te""",
    "pt": """o a os as um uma uns umas de do da dos das e ou que quem qual quais quando onde como por porque quanto
        quantos quantas é são era eram foi foram tem têm em no na nos nas ao à para com sem sobre entre não se seu sua
        seus suas pelo pela""",
    "ro": """un o al ai ale și sau este sunt era erau a fost au ce cine care când unde cum cât câți câte câtă de la în
        din pe cu fără pentru prin între despre nu se să lui lor său sa cărui cărei căror ci ca mai""",
    "tr": """ve veya bir bu şu o ne neyi nedir kim kimin kimdir hangi hangisi nerede nereden neresi zaman nasıl neden
        niçin kaç kadar ile için de da mi mı mu mü midir mıdır olarak olan oldu olduğu değil en daha göre sonra önce
        var yok ise hangileri""",
    "vi": """là của và hoặc các những một trong trên dưới với cho từ đến đã đang sẽ không có được bị gì ai nào khi đâu
        sao thế bao nhiêu người năm này đó ở vào về tại như để do""",
}
_WORDS = {code: frozenset(words.split()) for code, words in _FUNCTION_WORDS.items()}
_LETTERS = {
    "de": frozenset("ßäöü"),
    "es": frozenset("ñ¿¡"),
    "fr": frozenset("çœêèùîôûë"),
    "it": frozenset("ìòù"),
    "pt": frozenset("ãõç"),
    "ro": frozenset("ăâîșțşţ"),
    "tr": frozenset("ğışçöüİ"),
    "vi": frozenset("ăâđêôơưảẻỉỏủỷạẹịọụỵãẽĩỹầấậẩẫềếệểễồốộổỗờớợởỡừứựửữằắặẳẵ"),
}


@remembered
def language_of(text: str) -> str | None:
    """The ISO 639-1 code of the language of `text`, one of `LANGUAGES`; None where it is not clear."""
    text = unicodedata.normalize("NFC", text)
    groups = _scripts(text)
    if not groups:
        return None
    group, weight = groups.most_common(1)[0]
    if 2 * weight <= groups.total():
        return None
    if group == "LATIN":
        return _latin(text)
    if group == "zh" and _KANA.search(text):
        return "ja"
    if group not in LANGUAGES or _FOREIGN & set(text.casefold()):
        return None
    return group


def language_of_prose(text: str) -> str | None:
    """As `language_of`, for a passage of a document: None also where it is a table or a list of names.

    In running text of a language in Latin script every third or fourth word is a function word. Single words of a table
    ("Para", "dos", an "ç") say nothing about its language.
    """
    code = language_of(text)
    if code not in _WORDS:
        return code
    words = _WORD.findall(text.casefold())
    return code if sum(word in _WORDS[code] for word in words) >= _PROSE_SHARE * len(words) else None


def answer_in(text: str) -> str:
    """The prompt's instruction to answer in the language of `text`; "" where that is English or not clear."""
    code = language_of(text)
    return "" if code is None or code == ENGLISH else f"Answer in {LANGUAGES[code]}."


def is_english(question: str) -> bool:
    """Whether a question is in English, the language the default installation's models read, or in no clear one."""
    return language_of(question) in (None, ENGLISH)


def _scripts(text: str) -> "Counter[str]":
    """Letters by group: a language with a script of its own, or "LATIN". Words count about the same in each."""
    found: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            script = unicodedata.name(char, "").split(" ", 1)[0]
            group = _SCRIPTS.get(script, script)
            group = "zh" if group == "ja" else group  # Japanese uses both, and is recognised by its kana
            found[group] += _WORD_OF_UNSPACED if group in _UNSPACED else 1
    return found


def _latin(text: str) -> str | None:
    """The language with most function words and letters in the text; None where there are none, or two are equal."""
    words = Counter(_WORD.findall(text.casefold()))
    # Capitalised words may be foreign names.
    letters = {char for word in text.split() if not word[0].isupper() for char in word.casefold()}
    scores = {
        code: sum(words[word] for word in known) + _LETTER_WEIGHT * len(letters & _LETTERS.get(code, frozenset()))
        for code, known in _WORDS.items()
    }
    (best, most), (_, second) = sorted(scores.items(), key=lambda pair: -pair[1])[:2]
    return best if most > second else None
