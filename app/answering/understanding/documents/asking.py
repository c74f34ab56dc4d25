"""Recognises questions about a document as a whole: "What is this document about?", "Summarise the strategic plan".

The patterns are a closed list and must match the whole question, so a question for a fact is never taken for one:
"What does the memo say?" is, "What does the memo say about water?" is not. Beyond the pattern the subject must be a
document: pointed at ("this", "it"), called by a word for documents ("the report on ducks"), or given by a file's name.
A subject of other words ("Summarise Moby Dick") is a document only if one in scope has these words for a title.

Example:
    >>> wanted_overview("Give me a short overview of the GSA strategic plan.")
    Wanted(words=frozenset({'gsa', 'strategic'}), kinds=frozenset({'plan'}), pointed=False, explicit=False, ...)
    >>> wanted_overview("What is the budget of the plan?") is None
    True
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingestion.titles import words_of_name
from retrieval.words import terms

_MOST_CHARACTERS = 200
_MOST_WORDS = 12  # of a subject; a longer one is a description of content

_CLEAR = frozenset(
    """document doc file pdf report paper article memo memorandum text book ebook handbook manual presentation slide
    deck spreadsheet workbook brochure e-mail email thesis dissertation whitepaper webpage essay transcript newsletter
    minutes""".split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
_ANY_DOCUMENT = frozenset({"document", "doc", "file", "pdf", "text"})  # these name no document
# They are documents, and as often what a document is about.
_UNCLEAR = frozenset(
    """plan study protocol guide contract agreement policy letter filing form statement opinion ruling patent receipt
    invoice page note contribution notice""".split()  # noqa: SIM905
)
# "The book" whose name is asked for may be another one that a document is about; these are the document itself.
_NAMED = frozenset(
    """document doc file pdf report memo memorandum contract agreement handbook manual presentation thesis
    dissertation""".split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
_POINTING = frozenset({"this", "that", "it", "attached", "uploaded"})
_DETERMINERS = _POINTING | frozenset("the a an my our your above following whole entire full one".split())  # noqa: SIM905
_PREPOSITIONS = frozenset("on about of for from by in to at with regarding concerning called titled named".split())  # noqa: SIM905
_PARTS = frozenset(
    """section chapter paragraph table figure appendix part clause annex footnote row column line sentence sheet item
    pages sections chapters tables figures parts documents docs files pdfs reports papers articles memos texts books
    and or vs versus who when where why how which what he she they him her them you i we there""".split()  # noqa: SIM905
)
_NUMBERED = frozenset({"page", "article", "slide", "note", "form"})  # with a number they are parts of a document
# Both begin at the first part of a name only, so that a long name is read once.
_FILE = re.compile(
    r"(?<![\w-])(?<![\w-]\.)[\w-]++(?:\.[\w-]++)*\.(?:pdf|docx?|xlsx?|pptx?|html?|md|txt|csv|eml|epub|rtf|od[tsp])"
)
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?:[-_.'&]++[^\W_]++)+")
_TOKEN = re.compile(r"[\w&][\w&'.-]*")

_SUBJECT = r"(?P<subject>[^?!;:\n]{1,120}?)"
# Each word fits one alternative only: with two, the time would double with each repetition.
_LENGTH = (
    r"(?:short|brief|quick|concise|general|high-level|rough|one-\w+|(?!one-)\w+-(?:sentence|word|line|paragraph|page))"
)
_SUMMARY = r"(?:summary|overview|synopsis|outline|gist|tl;?dr|recap|abstract|rundown)"
_BRIEFLY = r"(?: briefly| in brief| in (?:an?|one|two|three|four|five|\d+|a few) (?:short )?(?:\w+))?"
_POLITE = re.compile(
    r"(?:(?:please|kindly|hi|hello|hey|so|ok|okay|and|now|then)\W+"
    r"|(?:can|could|would|will) you (?:please )?|i(?:'d| would) like (?:to (?:see|have|get|know)|you to)? ?"
    r"|i (?:want|need) (?:to (?:see|have|know)|you to)? ?)+"
)
_POLITE_ENDS = ("please", "thanks", "thank you", "for me")

# With any subject that names a document.
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"what(?:'s| is| are| was| were) {_SUBJECT}(?: all| mainly| mostly| basically| really| generally)? about",
        rf"(?:(?:tell me|tell us|say|know|explain) )?what {_SUBJECT} (?:is|was) (?:all |mainly |mostly )?about",
        rf"(?:summari[sz]e|sum up|recap|outline|tl;?dr(?: of)?:?) (?:for me )?{_SUBJECT}{_BRIEFLY}",
        rf"(?:(?:give|write|provide|show|make|get|prepare)(?: me| us)? )?(?:an? |the |some )?(?:{_LENGTH} )*{_SUMMARY}"
        rf" (?:of|for|on) {_SUBJECT}{_BRIEFLY}",
        rf"what(?:'s| is) (?:an? |the )?(?:{_LENGTH} )*{_SUMMARY} of {_SUBJECT}",
    )
)
# With a subject that is a document by its own words.
_EXPLICIT = tuple(
    re.compile(pattern)
    for pattern in (
        rf"what do(?:es)? {_SUBJECT} (?:cover|discuss|deal with|describe|say|contain|address|talk about|tell(?: us)?)",
        rf"what(?:'s| is) (?:in|inside|contained in|covered in|covered by|discussed in|described in) {_SUBJECT}",
        rf"what (?:topics|subjects|themes|issues) do(?:es)? {_SUBJECT} (?:cover|discuss|address|deal with)",
        rf"what (?:topics|subjects|themes|issues) are (?:covered|discussed|addressed) (?:in|by) {_SUBJECT}",
        r"what(?:'s| is| are) (?:the )?(?:topic|(?:main|key|central) (?:idea|point|topic|message|theme|takeaway)s?|"
        rf"takeaways?|contents?) (?:of|in) {_SUBJECT}",
        rf"(?:tell me about|describe|explain) {_SUBJECT}",
        r"what(?:'s| is) (?P<subject>(?:this|that) [\w-]+)",
    )
)
# For its name. The subject is a word for a document and nothing more, and the document the one at hand.
_NAME = tuple(
    re.compile(pattern)
    for pattern in (
        rf"what(?:'s| is) the (?:name|title) of {_SUBJECT}",
        rf"what(?:'s| is) {_SUBJECT}'s (?:name|title)",
        rf"what is {_SUBJECT} (?:called|named|titled|entitled)",
        r"what (?:kind|sort|type) of (?P<subject>[\w-]+) is (?:this|that|it)",
    )
)
_GERMAN = r"(?:dies(?:e[mnrs]?)|das|dem|der|die|des) (?:dokument|datei|bericht|text|pdf)(?:e?s)?"
_FRENCH = r"(?:ce|cette|le|la|du|au) (?:document|fichier|rapport|texte|pdf)"
_SPANISH = r"(?:este|ese|el|del) (?:documento|archivo|informe|texto|pdf)"
# Questions about the document at hand.
_POINTED = re.compile(
    rf"(?:(?:give|show|write|make)(?: me| us)? )?(?:an? |the )?(?:{_LENGTH} )*(?:summary|overview|synopsis|tl;?dr)"
    r"|summari[sz]e|sum up"
    rf"|worum geht(?: es|'s)(?: (?:in|bei) {_GERMAN}| hier)?|wovon handelt {_GERMAN}"
    rf"|fass(?:e|en sie)? {_GERMAN} zusammen|(?:eine )?zusammenfassung(?: (?:von )?{_GERMAN})?"
    rf"|de quoi (?:parle|traite) {_FRENCH}|résum(?:e|ez|er) {_FRENCH}|(?:un )?résumé(?: (?:de )?{_FRENCH})?"
    rf"|de qu[ée] (?:trata|habla) {_SPANISH}|resum[ae] {_SPANISH}|(?:un )?resumen(?: (?:de )?{_SPANISH})?"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The document that a question asks about as a whole.

    Attributes:
        words: Words that distinguish it, folded and without plural endings.
        kinds: Words for documents of its kind, the same way: "report", "memo".
        pointed: Whether it is the one at hand: "this document", "it".
        explicit: Whether the question says that it is a document; else a title must hold all the words.
        compounds: Those of the words that are written as one, as they are written: "10-q".
        whole: Whether the words are all of a name: a file's, or a reply to the question which document is meant.
        name: Whether no more of it is asked for than its name.
    """

    words: frozenset[str]
    kinds: frozenset[str]
    pointed: bool
    explicit: bool
    compounds: frozenset[str] = frozenset()
    whole: bool = False
    name: bool = False

    @property
    def at_hand(self) -> bool:
        """Whether the question says nothing of it, only that it is at hand."""
        return self.pointed or not self.words | self.kinds


_AT_HAND = Wanted(frozenset(), frozenset(), pointed=True, explicit=True)


def wanted_overview(question: str) -> Wanted | None:
    """The document that a question asks about as a whole; None for every other question."""
    if len(question) > _MOST_CHARACTERS:
        return None
    asked = " ".join(question.casefold().replace("’", "'").split()).lstrip("¿¡ ")
    asked = _without_end(asked)
    if polite := _POLITE.match(asked):
        asked = asked[polite.end() :]
    if _POINTED.fullmatch(asked):
        return _AT_HAND
    for subject in _subjects(asked, _PATTERNS):
        if (wanted := _wanted(subject)) is not None:
            return wanted
    for subject in _subjects(asked, _EXPLICIT):
        if (wanted := _wanted(subject)) is not None and wanted.explicit:
            return wanted
    for subject in _subjects(asked, _NAME):
        first, *others = _tokens(subject) or [""]
        said = {token for token in (first, *others) if token not in _DETERMINERS}
        pointed = first in _POINTING or not others
        if said and said <= (_CLEAR | _UNCLEAR if pointed else _NAMED):
            return Wanted(frozenset(), frozenset(), pointed=True, explicit=pointed, name=True)
    return None


def _without_end(text: str) -> str:
    """`text`, whose white space is single spaces, without the marks and the "please" or "thanks" at its end."""
    rest, polite = text, False
    while True:
        bare = rest.rstrip(" .,!?")
        ending = next((end for end in _POLITE_ENDS if bare.endswith(end)), None)
        if ending is None:
            break
        rest, polite = bare.removesuffix(ending), True
    return (rest if polite else rest.rstrip(" .!?")).rstrip(" ,")


def _subjects(asked: str, patterns: tuple["re.Pattern[str]", ...]) -> Iterator[str]:
    for pattern in patterns:
        if (match := pattern.fullmatch(asked)) is not None:
            yield match.group("subject").strip(" \"'“”„«»`,.")


def _wanted(subject: str) -> Wanted | None:
    """The document that a subject names, None where it is a part of one, several, or no document at all."""
    if (file := _FILE.search(subject)) is not None:
        name = file.group()
        words = terms(words_of_name(name)) - _ANY_DOCUMENT
        compounds = frozenset(_COMPOUND.findall(name.rpartition(".")[0]))
        return Wanted(words, frozenset(), pointed=False, explicit=True, compounds=compounds, whole=True)
    tokens = _tokens(subject)
    return None if _is_no_document(tokens) else _described(tokens)


def named(text: str) -> Wanted | None:
    """The document that a text is the name of, all its words; None for a text without words, or a long one."""
    if len(text) > _MOST_CHARACTERS:
        return None
    said = " ".join(text.casefold().split())
    tokens = [token for token in _tokens(_without_end(said)) if token not in _DETERMINERS]
    if not tokens:
        return None
    said = " ".join(tokens)
    compounds = frozenset(_COMPOUND.findall(said))
    words = terms(words_of_name(said))
    return Wanted(words, frozenset(), pointed=False, explicit=False, compounds=compounds, whole=True)


def _tokens(subject: str) -> list[str]:
    return [token.rstrip(".").removesuffix("'s").rstrip("'") for token in _TOKEN.findall(subject.replace("’", "'"))]


def _is_no_document(tokens: Sequence[str]) -> bool:
    """Whether the words name a part of a document, several documents, or describe content."""
    numbered = any(one in _NUMBERED and other.isdigit() for one, other in pairwise(tokens))
    return not tokens or len(tokens) > _MOST_WORDS or bool(_PARTS & set(tokens)) or numbered


def _described(tokens: Sequence[str]) -> Wanted | None:
    named = [token for token in tokens if token not in _DETERMINERS]
    pointed = tokens[0] in _POINTING
    if not named:
        return _AT_HAND if pointed else None
    if named[0] in _PREPOSITIONS:
        return None
    head = next((at for at, token in enumerate(named) if token in _PREPOSITIONS), len(named)) - 1
    is_document = named[head] in _CLEAR or (pointed and named[head] in _UNCLEAR)
    if pointed and not is_document:
        return None  # "this aircraft" is a thing in a document
    kinds = {token for token in named[: head + 1] if token in _CLEAR | _UNCLEAR}
    words = {token for token in named if token not in kinds and token not in _PREPOSITIONS}
    content = terms(" ".join(sorted(words))) if words else frozenset[str]()
    names = frozenset(kinds - _ANY_DOCUMENT)
    if not is_document and not content and not names:
        return None
    compounds = frozenset(_COMPOUND.findall(" ".join(sorted(words))))
    return Wanted(content, names, pointed=pointed, explicit=is_document, compounds=compounds)
