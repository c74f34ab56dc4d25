"""Finds the subject at the beginning of an English sentence, and writes it inside a question.

There is no parser: a subject is a short run of words before the first auxiliary or known verb, and a run that may be
anything else is refused. A missed question costs nothing, and an ill-formed one is worse than none.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MOST_WORDS = 7
_MOST_CHARS = 80

_WORD = r"[^\W\d_][\w’'&-]*+"
_RUN = rf"{_WORD}(?: (?:{_WORD}|\([A-Z]{{2,8}}\))){{0,{MOST_WORDS - 1}}}?"
SUBJECT = rf"(?P<subject>{_RUN})"
"""A run of words, the shortest that lets the rest of a pattern match."""
OBJECT = rf"(?P<object>(?:the|[A-Z][\w’'&-]*+){_RUN[len(_WORD) :]})"
"""The same for an object: "the" or a name begins it."""

_JOINING = frozenset(["of", "the", "and", "for", "in", "on", "at", "to", "de", "la", "von", "van", "a", "an"])
_POINTING = frozenset(
    """this that these those it its they them their he him his she her hers we us our ours i me my you your
    yours there here one ones other others another such same latter former following above below aforementioned
    said each every all both some many most any few several none no neither either everyone someone nobody what
    which who whom whose when where why how first second third last next more less part parts fact result
    results example question answer""".split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
"""Words that mean something which other sentences name."""
_CLAUSE = frozenset(
    """is are was were be been being am has have had having do does did will would shall should can could may
    might must not never also only just if because since after before while although though unless until whether
    however therefore thus hence then so as but or nor than by with without from into during under over about
    between through per via according made took gave found held led told saw came went became began got kept
    left lost met paid put ran sold sent set shows says states notes suggests indicates believes means reports
    requires ensures gives uses makes takes needs wants expects believe think know note see use make take need
    want expect say show provides includes contains consists refers allows helps remains seems appears becomes
    yet still even once again too very much well now today currently recently often usually generally typically
    sometimes always already""".split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
"""Words that show that a run is a clause, or more than a subject."""
_ADJECTIVE_ED = frozenset(["united", "limited", "related", "combined", "consolidated", "fixed", "proposed", "advanced"])
_ARTICLES = ("The ", "A ", "An ", "the ", "a ", "an ")
_PREPOSITIONS = frozenset(["of", "for", "in", "on", "at", "per", "to", "with", "from"])
_SMALL = re.compile(r"(?<![\w’'./@-])[a-z][a-z’'-]+(?![\w@/-]|\.\w)")
_CAPITAL = re.compile(r"(?<=[a-z,;] )[A-Z][\w’'-]*")


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject as it stands inside a question: "the plant in Oslo".

    Attributes:
        text: Its words, with a small letter where the sentence alone gave it a capital.
        definite: Whether it begins with "the".
        named: Whether every word but those that join is capitalised: a name.
    """

    text: str
    definite: bool
    named: bool

    @property
    def bare(self) -> bool:
        """Whether it is "the" and a single word, which says little outside its sentence."""
        return self.definite and self.text.count(" ") == 1

    @property
    def plural(self) -> bool:
        """Whether it is plural."""
        return is_plural(self.text)


class Spelling:
    """How a document spells its words inside sentences, which tells a name from a word that begins a sentence.

    >>> spelling = Spelling("The ferry left. We saw Bergen and ferries.")
    >>> spelling.is_small("ferries"), spelling.is_small("bergen"), spelling.is_small("fares")
    (True, False, None)
    """

    def __init__(self, text: str) -> None:
        self._small = Counter(word.casefold() for word in _SMALL.findall(text))
        self._capital = Counter(word.casefold() for word in _CAPITAL.findall(text))

    def is_small(self, word: str) -> bool | None:
        """Whether a word is written small, None where the document does not tell."""
        small, capital = self._small[word], self._capital[word]
        return None if small == capital == 0 else small > capital


def subject_of(words: str, spelling: Spelling) -> Subject | None:
    """The subject that the first words of a sentence are; None where they may be something else."""
    tokens = words.split(" ")
    if not _is_noun_phrase(words, tokens):
        return None
    if words.startswith(_ARTICLES):
        return Subject(words[0].lower() + words[1:], words[:4].casefold() == "the ", named=False)
    if not words[0].isupper():  # behind "In 1987, "
        return Subject(words, definite=False, named=False)
    named = all(token[0].isupper() or token.startswith("(") or token in _JOINING for token in tokens)
    shouted = len(tokens[0]) > 1 and not any(char.islower() for char in tokens[0])
    small = False if shouted else spelling.is_small(tokens[0].casefold())
    if small is None and len(tokens) > 1 and tokens[1].islower():
        small = True
    lacks_article = len(tokens) == 1 and not is_plural(words)  # "logo"
    if small is None or (small and lacks_article):
        return None
    if small and not (named and len(tokens) > 1):
        return Subject(words[0].lower() + words[1:], definite=False, named=False)
    return Subject(words, definite=False, named=named)


def _is_noun_phrase(words: str, tokens: Sequence[str]) -> bool:
    """Whether a run of words may be a noun phrase that says by itself what it means."""
    folded = [token.casefold().strip("()") for token in tokens]
    if len(tokens) > MOST_WORDS or len(words) > _MOST_CHARS or folded[-1] in _JOINING:
        return False
    if any(token in _POINTING or token in _CLAUSE for token in folded) or folded[0].endswith(("ing", "ly")):
        return False
    opens = words.startswith(_ARTICLES) or folded[0] not in _JOINING | _PREPOSITIONS
    return opens and not any(_is_verb_form(token) for token in tokens[1:])


def _is_verb_form(token: str) -> bool:
    """Whether a small word looks like a verb or an adverb: a clause would hold one, a noun phrase seldom."""
    if not token[0].islower() or len(token) <= 4:
        return False
    return token.endswith("ly") or (token.endswith("ed") and token not in _ADJECTIVE_ED)


def is_plural(text: str) -> bool:
    """Whether a noun phrase is plural: its head ends with "s".

    >>> is_plural("total net sales"), is_plural("the cost of sales"), is_plural("gross loss")
    (True, False, False)
    """
    head = head_of(text)
    return (head.endswith("s") and not head.endswith(("ss", "us", "is"))) or head in {"people", "staff"}


def head_of(text: str) -> str:
    """The head of a noun phrase, in small letters: its last word before a preposition."""
    words = text.casefold().split()
    ends = next((at for at, word in enumerate(words) if at and word in _PREPOSITIONS), 0)
    return words[ends - 1] if ends else words[-1]
