"""Decides whether a passage names what a question asks about, without which its words do not lead the answer.

The head noun of the question and the word that distinguishes it ("the first spam e-mail") have to be in the sentence,
its heading or the document's title; the names of the question there or in the passage around the sentence, if the
sentence is not about another thing of that kind ("the Bergen plant" for "the Oslo plant"). Surface rules for English;
a question that they cannot read asks for nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.answering.languages.noun_phrases import (
    DETERMINERS,
    FUNCTION_WORDS,
    PARTICIPLE,
    PREPOSITIONS,
    Word,
    names,
    plural,
    topic,
    words,
)
from app.answering.languages.question_kind import kind_asked
from app.answering.languages.recognition import is_english
from app.answering.quoting.candidates import Candidate
from retrieval.memo import remembered
from retrieval.words import folded, terms, unaccented

# Heads that say what kind of answer is asked for; documents often leave them out ("The warranty is 24 months").
_MEASURES = frozenset(
    """age amount area article capital concept cost date deadline depth distance document duration fee form frequency
    height idea kind length level limit list name notion number paper part percent percentage period place
    population price rate report share size sort speed study sum table term text time title total type value weight
    width word year""".split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
# Modifiers that distinguish nothing, or that documents word in other ways.
_COMMON = frozenset(
    """actual annual average best big biggest central current different early eight exact final first five former four
    full general great head highest initial largest last latest longest lowest main major maximum minimum most new
    newest next nine old oldest one only original other overall own present previous principal real recent same
    second seven single six smallest tallest ten third three top total two usual very whole yearly""".split()  # noqa: SIM905
)
# What topics may end with: adverbs, and participles without an ending of their own.
_TRAILING = frozenset(
    """begun bought brought caught done ever fed first fought gone hit hung hurt kept last lent let lit met now
    originally put read set shot shut spent sung taught today usually won""".split()  # noqa: SIM905
)
_ANAPHORIC = re.compile(r"\W*(?:it|its|he|his|she|her|they|their|this|that|these|those|both|such)\b", re.IGNORECASE)
_KIND_BEHIND = re.compile(r"(?:['’]s)?\s+(?P<kind>[a-z][\w-]+)")
_KIND_BEFORE = re.compile(
    r"(?<![\w-])(?P<kind>[a-z][\w-]++)\s++(?:of|in|at|from|near|for|called|named)\s++(?:the\s++)?\Z"
)
_PLACED = re.compile(r"\b(?:in|at|near)\s+(?:the\s+)?\Z", re.IGNORECASE)
_OPENS = re.compile(r"\W*(?:the\s+)?\Z", re.IGNORECASE)
_LEAST_STEM = 5
_ENDINGS = 2  # letters by which a verb's and a noun's form differ: founder and founded, election and elected
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question asks about: the words that a passage has to have, and the names."""

    nouns: tuple[str, ...]
    names: tuple[str, ...]


def names_subject(question: str, candidate: Candidate) -> bool:
    """Whether a candidate, by its sentence, its headings or its passage, is about what an English question asks about.

    Example:
        >>> names_subject("When was the first spam e-mail sent?", candidate)  # "The first e-mail was sent in 1971."
        False
    """
    if not is_english(question):
        return True
    asked = _asked(question)
    chunk = candidate.source.chunk_at(candidate.core)
    before = chunk.text[: max(0, candidate.core.start_char - chunk.start_char)]
    said = f"{candidate.text}\n{candidate.core_text}"
    if _ANAPHORIC.match(candidate.core_text):
        said = f"{before.rsplit(chr(10) * 2, 1)[-1]}\n{said}"
    above = "\n".join((chunk.title, *chunk.heading_path, chunk.table_header, _spaced(chunk.filename)))
    near = folded(f"{said}\n{above}")
    return all(_has(near, noun) for noun in asked.nouns) and all(
        _is_named(name, question, candidate.core_text, said=said, above=above, passage=chunk.text)
        for name in asked.names
    )


@remembered
def _asked(question: str) -> _Asked:
    return _Asked(tuple(_nouns(topic(question))), tuple(names(question)))


def _nouns(phrase: str | None) -> Iterator[str]:
    """The head noun of a phrase and the word that distinguishes it, but no names; none of a phrase that is unclear."""
    if phrase is None:
        return
    tokens = words(phrase)
    noun, behind = _cut(tokens)
    named = any(word.capital for word in noun)
    determined = bool(noun) and noun[0].low in DETERMINERS
    if not noun or not (determined or named or len(noun) > 1 or plural(noun[0].low)) or PARTICIPLE.match(noun[0].low):
        return
    noun = noun[determined:]
    while len(noun) > 1 and noun[-1].low in _TRAILING:
        noun = noun[:-1]
    head, modifier = noun[-1], noun[-2] if len(noun) > 1 else None
    if head.low not in _MEASURES:
        yield from _common(head)
    elif modifier is None or modifier.low in _COMMON:
        yield from (word for after in behind[-1:] for word in _common(after))
    if modifier is not None and modifier.low not in _COMMON and not modifier.text[0].isdigit():
        yield from _common(modifier)


def _cut(tokens: list[Word]) -> tuple[list[Word], list[Word]]:
    """The words of a phrase up to its first preposition, and those behind "of" up to the next one."""
    ends = [at for at, word in enumerate(tokens) if word.low in PREPOSITIONS | {"of"}] + [len(tokens)]
    behind = tokens[ends[0] + 1 : ends[1]] if len(ends) > 1 and tokens[ends[0]].low == "of" else []
    return tokens[: ends[0]], behind


def _common(word: Word) -> Iterator[str]:
    if not word.capital:
        yield word.low


def _has(found: frozenset[str], noun: str) -> bool:
    """Whether a noun is among terms, also in another form or written with or without its hyphen."""
    noun = unaccented(noun)
    whole, parts = terms(noun.replace("-", "")), terms(noun)
    return whole <= found or parts <= found or any(_alike(one, other) for one in whole for other in found)


def _alike(one: str, other: str) -> bool:
    least = max(_LEAST_STEM, min(len(one), len(other)) - _ENDINGS)
    return one[:least] == other[:least] and len(one) >= least <= len(other)


def _spaced(filename: str) -> str:
    return re.sub(r"[_.]|(?<=[a-z])(?=[A-Z\d])", " ", filename)


def _is_named(name: str, question: str, sentence: str, *, said: str, above: str, passage: str) -> bool:
    """Whether a name of the question is in the sentence or above it, or in its passage where nothing else is named."""
    if _mentions(said, name):
        return True
    if _names_another(name, question, sentence):
        return False
    if _mentions(above, name):
        return True
    return _mentions(passage, name) and not _is_placed_elsewhere(name, question, sentence)


def _mentions(text: str, name: str) -> bool:
    """Whether most of the words of a name are in a text."""
    wanted = terms(unaccented(name))
    return len(wanted & folded(text)) >= _HALF * len(wanted)


def _names_another(name: str, question: str, sentence: str) -> bool:
    """Whether a sentence names another thing of the kind that the question says of the name: `the Bergen plant`."""
    kinds = set(_kinds(question, name))
    return any(
        kinds & set(_kinds(sentence, other)) for other in _capitalised(sentence) if not terms(other) & terms(name)
    )


def _kinds(text: str, name: str) -> Iterator[str]:
    """The nouns behind and before a name: `plant` of `the Oslo plant` and of `the plant in Oslo`."""
    at = text.find(name)
    found = (_KIND_BEHIND.match(text, at + len(name)), _KIND_BEFORE.search(text[:at])) if at >= 0 else ()
    for match in found:
        if match is not None and match["kind"] not in FUNCTION_WORDS:
            yield from terms(match["kind"])


def _capitalised(text: str) -> list[str]:
    """The names of a text, also the single word that begins it."""
    first = next(iter(words(text)), None)
    opening = [first.text] if first is not None and first.capital and first.low not in DETERMINERS else []
    return [*names(text), *opening]


def _is_placed_elsewhere(name: str, question: str, sentence: str) -> bool:
    """Whether a sentence is in or at another place than the question, or begins with another name."""
    others = [sentence[: sentence.find(other)] for other in names(sentence) if not terms(other) & terms(name)]
    placed = _PLACED.search(question[: question.find(name)]) is not None
    if placed and any(map(_PLACED.search, others)):
        return True
    return (placed or topic(question) == name) and kind_asked(question) != "name" and any(map(_OPENS.fullmatch, others))
