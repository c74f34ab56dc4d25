"""Drafts questions from sentences that need no subject: counts, authors, definitions, labels, and what the text asks.

Example:
    >>> [draft.question for draft in line_drafts("Departure: 7.30")]
    ['What is the departure?']
"""

import re
from collections.abc import Iterator

from app.suggestions.drafts import COUNT, MOST_CHARS, THINGS, Draft, any_of
from app.suggestions.subjects import is_plural
from retrieval.types import Span

_READ_CHARS = MOST_CHARS  # of a sentence, at most
_COUNTED = re.compile(
    rf"(?:A total of |In total,? )?(?P<answer>{COUNT}|[A-Z][a-z]+) {THINGS} (?P<is>are|were)"
    r" (?P<verb>[a-z]+ed|built|held|hurt|found|lost|sold|made)"
    r"(?P<more>(?: (?:in|on|at|to|from|by|for|the|a|of|[a-z]+)){0,5}?)(?=[,.;]|$)"
)
_THERE = re.compile(
    rf"There (?P<is>are|were) (?P<answer>{COUNT}) {THINGS}(?P<more> (?:in|on|at) the [a-z]+(?: [a-z]+)?)?(?=[,.;:]|$)"
)
_NUMBERS = frozenset(
    """Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Fifteen Twenty Thirty Forty Fifty""".split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
_DEFINED = re.compile(r"[“\"](?P<term>[^“”\"]{2,60})[”\"] (?:means|shall mean|refers to) (?P<answer>[^;]{8,220})")
_LABEL = re.compile(r"(?P<label>[A-Z][A-Za-z]*(?: [A-Za-z]+){0,3}):[ \t]+(?P<answer>[^\n|]{1,80}?)[ \t]*$")
_LABELLED = re.compile(
    r"\b(?:date|deadline|price|fee|cost|budget|amount|total|rate|address|period|duration|location|capacity|length|width"
    r"|height|weight|speed|temperature|population|departure|arrival|balance|subtotal|tax|currency|venue|salary)\Z",
    re.IGNORECASE,
)
_AUTHORS = {
    "introduce": "introduce", "propose": "propose", "present": "present", "show that": "show", "argue that": "argue",
    "demonstrate that": "demonstrate", "find that": "find", "found that": "find", "conclude that": "conclude",
    "recommend that": "recommend", "investigate": "investigate", "evaluate": "evaluate", "compare": "compare",
}  # fmt: skip
_WE = re.compile(
    r"(?:(?:In|With|Through) this (?:work|paper|report|article|study|chapter|survey), |Here,? |Finally, )?"
    rf"[Ww]e (?:also )?(?P<verb>{any_of(_AUTHORS)}) (?P<answer>[^;]{{15,250}})"
)
_ASKS = re.compile(
    r"(?:What|When|Where|Who|How(?: (?:much|many|long|often|far|old))?|Which|Why|How many [a-z]+)"
    r" (?:is|are|was|were|do|does|did|can|should|will|must|may|has|have)(?: [\w’'(),&/-]+){2,12}\?"
)


def line_drafts(line: str) -> Iterator[Draft]:
    """The questions that a line answers by itself, whatever its subject."""
    if len(line) > _READ_CHARS:
        return
    match = _COUNTED.match(line)
    if match is not None and (match["answer"] in _NUMBERS or any(char.isdigit() for char in match["answer"])):
        question = f"How many {match['things']} {match['is']} {match['verb']}{match['more']}?"
        yield Draft(question, Span(*match.span("answer")), "number")
    if (match := _THERE.match(line)) is not None and match["more"]:
        question = f"How many {match['things']} {match['is']} there{match['more']}?"
        yield Draft(question, Span(*match.span("answer")), "number")
    if (match := _WE.match(line)) is not None:
        yield Draft(f"What do the authors {_AUTHORS[match['verb']]}?", Span(*match.span("answer")), "content")
    if (match := _DEFINED.match(line)) is not None:
        yield Draft(f"What does “{match['term']}” mean?", Span(*match.span("answer")), "meaning")
    match = _LABEL.match(line)
    if match is not None and _LABELLED.search(match["label"]):
        label = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in match["label"].split())
        question = f"What {'are' if is_plural(label) else 'is'} the {label}?"
        yield Draft(question, Span(*match.span("answer")), "value")


def asked_by_text(line: str) -> str | None:
    """A line that is itself a question, as a page of frequent questions has them; None for every other."""
    return line if len(line) <= _READ_CHARS and _ASKS.fullmatch(line) else None
