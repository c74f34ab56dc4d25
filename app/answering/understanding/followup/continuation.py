"""Decides whether a question goes on with the subject of the last answer, so that its documents are preferred.

A question goes on if it refers back: rules rewrote it, it begins with a conjunction, or it has a pronoun, a name or a
definite noun of the last exchange. It does not if it changes the subject: by a name, a year or a file that the last
exchange does not mention, or by asking for other documents.
"""

import re
from itertools import pairwise

from app.answering.languages.noun_phrases import FUNCTION_WORDS, names, words
from app.answering.understanding.followup.antecedents import Exchange
from app.answering.understanding.followup.history import newest

_REFERRING = frozenset("he she him his her hers it its they them their theirs this these those".split())  # noqa: SIM905
# Of the languages with small words of their own for "and"; the rules rewrite English alone.
_CONTINUING = frozenset(("and", "but", "so", "et", "und", "y"))
_FILE = re.compile(r"(?<![\w-])[\w-]++\.(?:pdf|docx?|xlsx?|pptx?|html?|md|txt|csv|eml|epub)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_ELSEWHERE = re.compile(
    r"\b(?:an)?other (?:\w+ )?(?:document|file|report|source|case|contract)s?\b|\belsewhere\b"
    r"|\b(?:all|any|every|each|which|what|how many|across)(?: of)?(?: the| my| our)? (?:documents?|files?|reports?)\b",
    re.IGNORECASE,
)


def goes_on(asked: str, understood: str, last: Exchange) -> bool:
    """Whether the question goes on with the subject of the last exchange.

    >>> goes_on("And in Oslo?", "When did the plant in Oslo close?", Exchange("When did the plant close?", "In 2020."))
    False

    Args:
        asked: The question as the user wrote it.
        understood: The same question, rewritten to stand alone.
        last: The last exchange, with the passages that its answer cites. Its first `HISTORY_CHARACTERS` characters are
            read.
    """
    (last,) = newest([last])
    known = f"{last.question}\n{last.answer}\n{last.cited}".casefold()
    if _ELSEWHERE.search(asked):
        return False
    new = [*names(asked), *_FILE.findall(asked), *_YEAR.findall(asked)]
    if any(one.casefold() not in known for one in new):
        return False
    if new:
        return True
    tokens = [word.low for word in words(asked)]
    if understood != asked or (tokens and tokens[0] in _CONTINUING) or _REFERRING & set(tokens):
        return True
    told = {word.low for word in words(known)} - FUNCTION_WORDS
    return any(before == "the" and noun in told for before, noun in pairwise(tokens))
