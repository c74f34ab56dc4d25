"""Finds the names in a text, and the noun phrase that a question is about.

These are surface rules for English, without a parser. A name is a run of capitalised words; the noun phrase that a
question is about follows its auxiliary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_ENDING = r"(?:s|t|re|ve|ll|d|m)\b"
_WORD = re.compile(rf"(?!(?<=['’]){_ENDING})(?:\d(?:[\d.,]*\d)?|[^\W\d_]\w*(?:['’](?!{_ENDING})\w+|[-&]\w+)*)")
_SENTENCE_ENDS = frozenset('.!?:;\n"“(')
_BETWEEN_NAMES = re.compile(r"\s|\.\s")
_POSSESSIVE = re.compile(r"['’]s?\s+")
_OWNING = re.compile(r"['’]s\b")

WH = frozenset(("what", "when", "where", "who", "whom", "whose", "why", "which", "how"))
BE = frozenset(("is", "are", "was", "were"))
DO = frozenset("did does do can could will would should may might must has have had".split())  # noqa: SIM905 - shorter
AUXILIARIES = BE | DO
DETERMINERS = frozenset(("the", "a", "an"))
DEMONSTRATIVES = frozenset(("this", "that", "these", "those"))
PRONOUNS = frozenset("it its he him his she her they them their theirs there i me my we us our you your".split())  # noqa: SIM905
PREPOSITIONS = frozenset(
    """about across after against along at before between by during for from in into near of on over since through to
    under until with within""".split()  # noqa: SIM905
)
CONJUNCTIONS = frozenset("and or but so if because while when where which who that than as although".split())  # noqa: SIM905
FUNCTION_WORDS = (
    WH
    | AUXILIARIES
    | DETERMINERS
    | DEMONSTRATIVES
    | PRONOUNS
    | PREPOSITIONS
    | CONJUNCTIONS
    | frozenset(("not", "be", "been"))
)
TIMES = frozenset(
    """january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday""".split()  # noqa: SIM905
)
# Words, besides the function words, that begin sentences and are no names.
_OPENERS = frozenset(
    """according also although approximately both during each he however in it its many most no none not one only
    there these they this those two three yes i""".split()  # noqa: SIM905
)
_NAMELESS_OPENERS = FUNCTION_WORDS | _OPENERS
_PARTICLES = frozenset("of de van von der den du del della di da la le el al bin ibn the".split())  # noqa: SIM905
PARTICIPLE = re.compile(r"\w{2,}(?:ed|en|wn)$|(?:born|built|made|held|sold|found|lost|left|led|sent|paid|cut)$")
_LONGEST_PHRASE = 8  # words


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its offsets `[start, end)` in the text."""

    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        """The word in lower case."""
        return self.text.lower()

    @property
    def capital(self) -> bool:
        """Whether it has a capital letter, as part of a name."""
        return any(letter.isupper() for letter in self.text)


def words(text: str) -> list[Word]:
    """The words and numbers of `text`; a possessive ending is no word."""
    return [Word(match.group(), *match.span()) for match in _WORD.finditer(text)]


def names(text: str) -> list[str]:
    """Runs of capitalised words in order, each once: `Bank of England`, `Zoë Müller`, `NASA`. No months, no weekdays.

    A single word at the beginning of a sentence is no name, unless it is the whole text, is capitalised elsewhere
    too, has a possessive ending, or has capitals or digits within it.
    """
    tokens = words(text)
    openings = _openings(text, tokens)
    within = {word.text for word in tokens if word.start not in openings}
    found: list[str] = []
    at = 0
    while at < len(tokens):
        start, end = at, _run(text, tokens, at)
        while start < end and tokens[start].start in openings and tokens[start].low in _NAMELESS_OPENERS:
            start += 1
        run = tokens[start:end]
        if run and not all(word.low in TIMES or word.low == "i" for word in run):
            first = run[0]
            named = len(run) > 1 or first.start not in openings or len(tokens) == 1
            if named or _stands_out(text, first) or first.text in within:
                found.append(text[first.start : run[-1].end])
        at = max(end, at + 1)
    return list(dict.fromkeys(found))


def topic(question: str) -> str | None:
    """The noun phrase of a question, None if unclear: `the plant in Oslo` of "When did the plant in Oslo close?"."""
    tokens = words(question)
    auxiliary = next((at for at, word in enumerate(tokens) if word.low in AUXILIARIES and not word.capital), None)
    if tokens and tokens[0].low in AUXILIARIES:
        auxiliary = 0
    if auxiliary is None:
        begins = (at for at, word in enumerate(tokens) if at and (word.low in DETERMINERS or word.capital))
        start = next(begins, None)
        return None if start is None else _phrase(question, tokens, start, verb=None)
    return _phrase(question, tokens, auxiliary + 1, verb=tokens[auxiliary].low)


def head(phrase: str) -> str:
    """The head noun of a phrase: `plant` of `the plant in Oslo`, `revenue` of `Northwind's revenue`."""
    nouns: list[str] = []
    for word in words(phrase):
        if word.low in PREPOSITIONS and nouns:
            break
        nouns.append(word.low)
    return nouns[-1] if nouns else ""


def plural(phrase: str) -> bool:
    """Whether a phrase looks like a plural."""
    noun = head(phrase)
    several = noun.endswith("s") and not noun.endswith(("ss", "us", "is"))
    return noun in {"people", "children", "men", "women"} or " and " in phrase or (several and not names(noun))


def _run(text: str, tokens: Sequence[Word], at: int) -> int:
    """The end of the capitalised run of words that begins at `at`; `at` if none does."""
    if not tokens[at].capital:
        return at
    end = at + 1
    while end < len(tokens):
        after = end
        while after < len(tokens) and tokens[after].low in _PARTICLES and not tokens[after].capital:
            after += 1
        joined = after < len(tokens) and after - end <= 2 and tokens[after].capital
        if joined and after > end and tokens[end].low == "the":
            return end
        if not joined or any(
            not _adjacent(text, *pair) for pair in zip(tokens[end - 1 : after], tokens[end : after + 1], strict=True)
        ):
            return end
        end = after + 1
    return end


def _adjacent(text: str, left: Word, right: Word) -> bool:
    gap = text[left.end : right.start]
    return bool(_BETWEEN_NAMES.fullmatch(gap)) and (not gap.startswith(".") or len(left.text) <= 2)


def _openings(text: str, tokens: Sequence[Word]) -> frozenset[int]:
    """The offsets of the words that begin a sentence.

    They are found once per text, between neighbouring words, so that the time is linear in the text's length.
    """
    found: list[int] = []
    end = 0
    for word in tokens:
        gap = text[end : word.start]
        before = gap.rstrip()
        mark = before[-1:] in _SENTENCE_ENDS if before else end == 0
        if mark or "\n" in gap[len(before) :]:
            found.append(word.start)
        end = word.end
    return frozenset(found)


def _stands_out(text: str, word: Word) -> bool:
    """Whether a word is a name wherever it stands: by a possessive ending, or by capitals or digits within it."""
    return bool(_OWNING.match(text, word.end)) or not word.text[1:].islower()


def _phrase(text: str, tokens: Sequence[Word], start: int, *, verb: str | None) -> str | None:
    """The noun phrase from `start` on, without the main verb at its end that belongs to the auxiliary `verb`."""
    end = _segment(text, tokens, start)
    if end == start or tokens[start].low in PRONOUNS | DEMONSTRATIVES:
        return None
    kept = _without_verb(text, tokens, start, end, verb)
    while end < len(tokens) and tokens[end].low in {"of", "in", "at", "from", "for", "on", "near"}:
        after = end + 1
        inner = _segment(text, tokens, after)
        if inner == after or not _belongs(tokens, end, after):
            break
        attached = _without_verb(text, tokens, after, inner, verb)
        if kept < end and attached == inner and tokens[end].low != "of":
            break  # the verb stood before the preposition
        kept, end = attached, inner
    phrase = tokens[start:kept]
    if phrase and phrase[-1].low == "like":  # "What was the weather like?"
        phrase = phrase[:-1]
    if not phrase or len(phrase) > _LONGEST_PHRASE or all(word.low in FUNCTION_WORDS for word in phrase):
        return None
    if len(phrase) == 1 and PARTICIPLE.fullmatch(phrase[0].text):
        return None  # "What is it called?"
    return text[phrase[0].start : phrase[-1].end]


def _segment(text: str, tokens: Sequence[Word], start: int) -> int:
    """The end of the run of nouns that begins at `start`, with or without a determiner."""
    end = start
    while end < len(tokens):
        word = tokens[end]
        gap = text[tokens[end - 1].end : word.start] if end > start else " "
        if not (gap.isspace() or gap == "" or _POSSESSIVE.fullmatch(gap) or _adjacent(text, tokens[end - 1], word)):
            break
        if word.low in FUNCTION_WORDS and not (end == start and word.low in DETERMINERS) and not word.capital:
            break
        end += 1
    return end


def _belongs(tokens: Sequence[Word], preposition: int, after: int) -> bool:
    """Whether a prepositional phrase identifies a thing, and not a time."""
    follower = tokens[after + 1] if tokens[after].low in DETERMINERS and after + 1 < len(tokens) else tokens[after]
    if follower.low in TIMES or follower.text[0].isdigit():
        return False
    return tokens[preposition].low == "of" or follower.capital


def _without_verb(text: str, tokens: Sequence[Word], start: int, end: int, verb: str | None) -> int:
    nouns = [at for at in range(start, end) if tokens[at].low not in DETERMINERS]
    if len(nouns) < 2 or verb is None:
        return end
    capitals = [at for at in nouns if tokens[at].capital]
    if verb in DO and tokens[end - 1].capital:  # a name, the verb, its object's name
        verbs = [at for at in nouns if capitals[0] < at < capitals[-1] and not tokens[at].capital]
        return verbs[-1] if verbs else end
    owned = any(_POSSESSIVE.fullmatch(text[a.end : b.start]) for a, b in pairwise(tokens[start:end]))
    if verb in DO and capitals and len(nouns) == end - start and not owned:
        return capitals[-1] + 1  # a bare name, then the verb phrase
    if tokens[end - 1].capital:
        return end
    return end - 1 if verb in DO or PARTICIPLE.fullmatch(tokens[end - 1].low) else end
