"""Rules for sentences with numbers: how many, how much, how long.

Example:
    >>> [draft.question for rule in AMOUNTS for draft in rule.drafts("The fleet has 3 ferries.", Spelling(""))]
    ['How many ferries does the fleet have?']
"""

import re

from app.suggestions.drafts import COUNT, MOST_CHARS, NUMBER, TAIL, THINGS, Rule, Written, any_of
from app.suggestions.subjects import SUBJECT, Subject

_READ_CHARS = MOST_CHARS  # of a sentence, at most
_IS = r"(?P<is>is|are|was|were)"
_CHANGES = {
    "increased": "increase", "decreased": "decrease", "grew": "grow", "declined": "decline", "dropped": "drop",
    "rose": "rise", "fell": "fall",
}  # fmt: skip
_HOLDS = {
    "has": "does have", "have": "do have", "had": "did have", "employs": "does employ", "employed": "did employ",
    "serves": "does serve", "served": "did serve", "carries": "does carry", "carried": "did carry",
    "operates": "does operate", "operated": "did operate", "owns": "does own", "owned": "did own", "sold": "did sell",
    "produced": "did produce", "received": "did receive", "won": "did win", "scored": "did score",
    "contains": "does contain", "contain": "do contain", "includes": "does include", "include": "do include",
    "included": "did include", "covers": "does cover", "covered": "did cover", "trained": "did train",
    "tested": "did test", "enrolled": "did enroll", "completed": "did complete", "hired": "did hire",
    "opened": "did open", "issued": "did issue", "spans": "does span", "requires": "does require",
    "offers": "does offer", "supports": "does support", "made": "did make", "played": "did play",
}  # fmt: skip
_UNITS = r"(?:years|months|weeks|days|hours|minutes|seconds|miles|kilometers|kilometres|meters|metres|feet|pages)"


def _how_many(match: "re.Match[str]", subject: Subject) -> Written:
    did, verb = _HOLDS[match["verb"]].split()
    if (did == "do") != (subject.plural and did != "did") and did != "did":
        return None
    return f"How many {match['things']} {did} {subject.text} {verb}?"


def _measured(match: "re.Match[str]", subject: Subject) -> Written:
    return f"How {match['how']} {match['is']} {subject.text}?"


def _lasting(match: "re.Match[str]", subject: Subject) -> Written:
    verb = match["verb"]
    did, base = ("did", {"lasted": "last", "took": "take"}[verb]) if verb in {"lasted", "took"} else ("does", verb[:-1])
    return None if did == "does" and subject.plural else f"How long {did} {subject.text} {base}?"


def _changed(match: "re.Match[str]", subject: Subject) -> Written:
    return f"By how much did {subject.text} {_CHANGES[match['by']]}{match['more'] or ''}?"


def _costs(match: "re.Match[str]", subject: Subject) -> Written:
    did = {"costs": "does", "cost": "do"}[match["verb"]]
    return f"How much {did} {subject.text} cost?"


def _amount(match: "re.Match[str]", subject: Subject) -> Written:
    return None if subject.named or subject.bare else f"What {match['is']} {subject.text}?"


_YEAR = (
    r"(?P<more> (?:in|during) (?:the )?(?:(?:first|second|third|fourth) (?:quarter|half) of )?(?:fiscal )?(?:year )?"
    r"(?:19|20)\d\d(?![\w,.]?\d))?"
)
AMOUNTS = (
    Rule(
        re.compile(rf"{SUBJECT} {_IS} (?P<answer>{NUMBER} [a-z]+) (?P<how>long|high|tall|wide|deep|old|thick)\b{TAIL}"),
        "number",
        _measured,
    ),
    Rule(
        re.compile(rf"{SUBJECT} (?P<verb>lasted|lasts|took|takes) (?P<answer>{NUMBER} {_UNITS}){TAIL}"),
        "number",
        _lasting,
    ),
    Rule(re.compile(rf"{SUBJECT} (?P<verb>{any_of(_HOLDS)}) (?P<answer>{COUNT}) {THINGS}{TAIL}"), "number", _how_many),
    Rule(
        re.compile(
            rf"{SUBJECT} (?P<by>{any_of(_CHANGES)})(?: by)? (?P<answer>{NUMBER}(?: or {NUMBER})?){_YEAR}"
            r"(?P<tail> compared (?:to|with) [^,.;:]{3,60}(?=[,.;]))?"
        ),
        "number",
        _changed,
    ),
    Rule(
        re.compile(rf"{SUBJECT} (?P<verb>costs?) (?P<answer>{NUMBER}(?: (?!for\b|and\b)[a-z]+)?){TAIL}"),
        "number",
        _costs,
    ),
    Rule(re.compile(rf"{SUBJECT} {_IS} (?P<answer>{NUMBER}){TAIL}"), "number", _amount),
)
"""The rules, the surest first."""
