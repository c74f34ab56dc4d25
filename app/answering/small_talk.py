"""Recognises greetings, thanks, and questions about Footnote and its documents instead of their content.

The patterns are a closed list and must match the whole text. So a question about content is never taken for one:
"What can you do?" is, "What can you do about rust?" is not.

Example:
    >>> small_talk("Hello!")
    SmallTalk(wish=<Wish.GREETING: 'greeting'>, language='en')
    >>> small_talk("Which files mention Oslo?") is None
    True
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_MOST_CHARACTERS = 100
_BETWEEN_WORDS = re.compile(r"[^\w']+")


class Wish(StrEnum):
    """What is wanted: a greeting returned, thanks accepted, the list of documents, or what Footnote can do."""

    GREETING = "greeting"
    THANKS = "thanks"
    DOCUMENTS = "documents"
    ABILITIES = "abilities"


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """A recognised wish, and the ISO 639-1 code of its language."""

    wish: Wish
    language: str


# Matched against case-folded words (ß is ss) with single spaces, without punctuation but apostrophes.
_FILES = r"(?:documents|docs|files|pdfs)"
_HERE = r"(?: (?:here|in here|now|so far|available|loaded|uploaded))?"
_PATTERNS: dict[str, dict[Wish, str]] = {
    "en": {
        Wish.GREETING: r"(?:hello|hi|hiya|hey|greetings|good (?:morning|afternoon|evening|day))"
        r"(?: (?:there|again|footnote|everyone|all))?(?: how are you(?: doing)?(?: today)?)?"
        r"|how are you(?: doing)?(?: today)?",
        Wish.THANKS: r"(?:(?:ok|okay|great|perfect|good|cool|nice) )?(?:thanks|thank you|thx|many thanks|cheers)"
        r"(?: (?:a lot|so much|very much|again|footnote))?"
        r"(?: (?:for (?:your|the) (?:help|answer)|that helps|that(?:'s| is) (?:all|great|helpful)))?",
        Wish.DOCUMENTS: rf"(?:what|which) {_FILES} (?:do|can) (?:i|we|you) "
        rf"(?:have(?: access to)?|see|search|read|know|access|use|ask about){_HERE}"
        rf"|(?:what|which) {_FILES} are (?:there|here|in here|available|loaded|uploaded|indexed){_HERE}"
        rf"|how many {_FILES} (?:do (?:i|we|you) have(?: access to)?|can (?:i|we|you) (?:see|search|read|access)"
        rf"|are (?:there|here|in here|available|loaded|uploaded|indexed)){_HERE}"
        rf"|(?:do (?:i|we|you) have|are there) any {_FILES}{_HERE}"
        rf"|(?:(?:please|can you|could you) )?(?:list|show|name)(?: me)?(?: all)?(?: (?:the|my|our|your))? {_FILES}"
        rf"(?: (?:i|we|you) have)?{_HERE}(?: please)?"
        r"|what do (?:i|we|you) have(?: in)? here|what(?:'s| is)(?: in)? here",
        Wish.ABILITIES: r"what can (?:you|i) do(?: (?:for me|here|with (?:you|this)))?|what do you do"
        r"|(?:who|what) are you|what(?:'s| is) your name|how (?:can|could) you help(?: me)?"
        r"|(?:help|help me|can you help(?: me)?)(?: please)?|how do(?:es this| you) work"
        r"|what can i ask(?: you)?(?: here)?|are you (?:a )?(?:bot|robot|human|person|chatgpt|an ai)",
    },
    "de": {
        Wish.GREETING: r"(?:hallo|servus|moin|grüss gott|guten (?:morgen|tag|abend))(?: (?:zusammen|footnote))?"
        r"(?: wie geht(?: es|'s)? (?:dir|ihnen))?|wie geht(?: es|'s)? (?:dir|ihnen)",
        Wish.THANKS: r"(?:(?:ok|okay|super|gut|prima) )?(?:danke|danke schön|dankeschön|vielen dank|besten dank)"
        r"(?: (?:sehr|schön|dir|ihnen))?(?: für (?:die|deine|ihre) (?:hilfe|antwort))?",
        Wish.DOCUMENTS: r"(?:welche|was für|wie viele) (?:dokumente|dateien) (?:habe ich|haben wir|hast du|haben sie"
        r"|gibt es|sind|kennst du|kennen sie)(?: (?:hier|da|vorhanden|verfügbar))?"
        r"|(?:liste|zeige?)(?: mir)?(?: alle| die| meine)? (?:dokumente|dateien)(?: auf)?",
        Wish.ABILITIES: r"was kannst du(?: (?:tun|machen))?|was können sie(?: (?:tun|machen))?|wer bist du|wer sind sie"
        r"|was machst du|(?:kannst du|können sie) mir helfen|hilfe",
    },
    "es": {
        Wish.GREETING: r"(?:hola|buenos días|buenas(?: (?:tardes|noches))?)(?: (?:a todos|footnote))?"
        r"(?: (?:cómo|como) (?:estás|está|estas|esta))?|(?:cómo|como) (?:estás|está)",
        Wish.THANKS: r"(?:(?:vale|ok|perfecto) )?(?:gracias|muchas gracias|mil gracias)"
        r"(?: por (?:tu|su|la) (?:ayuda|respuesta))?",
        Wish.DOCUMENTS: r"(?:qué|que|cuáles|cuales|cuántos|cuantos) (?:documentos|archivos|ficheros) "
        r"(?:tengo|tenemos|tienes|hay|conoces)(?: (?:aquí|aqui|disponibles))?"
        r"|(?:lista|muestra|muéstrame)(?: todos)?(?: (?:los|mis))? (?:documentos|archivos|ficheros)",
        Wish.ABILITIES: r"(?:qué|que) (?:puedes|puede) hacer|(?:quién|quien) (?:eres|es usted)|(?:qué|que) haces"
        r"|(?:puedes|puede) ayudarme|ayuda",
    },
    "fr": {
        Wish.GREETING: r"(?:bonjour|bonsoir|salut|coucou)(?: (?:à tous|footnote))?(?: (?:comment )?ça va)?"
        r"|(?:comment )?ça va|comment allez vous",
        Wish.THANKS: r"(?:(?:ok|super|parfait) )?(?:merci|merci (?:beaucoup|bien)|un grand merci)"
        r"(?: pour (?:ton |votre |l'|la )(?:aide|réponse))?",
        Wish.DOCUMENTS: r"(?:quels|combien de) (?:documents|fichiers) (?:ai je|avons nous|as tu|avez vous"
        r"|y a t il|sont (?:disponibles|là)|connais tu|connaissez vous)(?: (?:ici|là))?"
        r"|(?:liste|listez|montre|montrez)(?: moi)?(?: tous)?(?: (?:les|mes))? (?:documents|fichiers)",
        Wish.ABILITIES: r"que (?:peux tu|pouvez vous|sais tu|savez vous) faire|qui (?:es tu|êtes vous)"
        r"|(?:peux tu|pouvez vous) m'aider|aide",
    },
}
_COMPILED = {
    language: {wish: re.compile(pattern) for wish, pattern in patterns.items()}
    for language, patterns in _PATTERNS.items()
}


def small_talk(text: str) -> SmallTalk | None:
    """The wish of a text that is no question about content; None for every other text."""
    if len(text) > _MOST_CHARACTERS:
        return None
    words = _BETWEEN_WORDS.sub(" ", text.casefold().replace("’", "'")).strip(" '")
    for language, patterns in _COMPILED.items():
        for wish, pattern in patterns.items():
            if pattern.fullmatch(words):
                return SmallTalk(wish, language)
    return None
