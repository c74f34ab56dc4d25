"""Rules for sentences about events: when, where and by whom something was done.

Example:
    >>> spelling = Spelling("")
    >>> [draft.question for rule in EVENTS for draft in rule.drafts("The ferry was built in 1987.", spelling)]
    ['When was the ferry built?']
"""

import re

from app.suggestions.drafts import DATE, MOST_CHARS, TAIL, Rule, Written, any_of
from app.suggestions.subjects import OBJECT, SUBJECT, Subject

_READ_CHARS = MOST_CHARS  # of a sentence, at most
_BE = r"(?P<is>is|are|was|were)"
_PARTICIPLE = (
    r"(?P<verb>(?:[a-z]+ly )?(?:[a-z]{2,}ed|built|born|held|found|written|made|sold|won|lost|begun|given|taken|shown"
    r"|drawn|sunk|rebuilt|brought|bought|chosen|known|led|set up|sent|laid|paid))"
    r"(?P<more>(?: (?!in\b|on\b|by\b)[a-z]+){0,3})"
)
_PAST = {
    "opened": "open", "closed": "close", "began": "begin", "started": "start", "died": "die", "ended": "end",
    "joined": "join", "moved to": "move to", "acquired": "acquire", "merged with": "merge with", "won": "win",
    "became": "become", "introduced": "introduce", "launched": "launch", "adopted": "adopt", "approved": "approve",
    "signed": "sign", "published": "publish", "purchased": "purchase", "entered": "enter", "left": "leave",
    "returned to": "return to", "crashed": "crash", "landed": "land", "sank": "sink", "released": "release",
    "announced": "announce", "founded": "found", "established": "establish", "sold": "sell", "bought": "buy",
    "emerged": "emerge", "appeared": "appear", "received": "receive", "reached": "reach", "completed": "complete",
    "issued": "issue", "retired": "retire", "ordered": "order", "appointed": "appoint", "elected": "elect",
    "visited": "visit", "captured": "capture", "attacked": "attack", "destroyed": "destroy", "agreed to": "agree to",
    "filed": "file", "submitted": "submit", "granted": "grant", "rejected": "reject", "deployed": "deploy",
    "transferred": "transfer", "replaced": "replace", "discovered": "discover", "presented": "present",
    "declared": "declare", "withdrew": "withdraw", "met": "meet", "arrived at": "arrive at",
}  # fmt: skip
_OPENER = "Founded|Introduced|Released|Launched|Published|Built|Established|Patented|Created|Opened|Designed|Completed"
_ALONE = frozenset(
    [
        "opened",
        "closed",
        "began",
        "started",
        "died",
        "ended",
        "crashed",
        "landed",
        "sank",
        "retired",
        "emerged",
        "appeared",
    ]
)
_EXPIRING = {
    "expires": "expire",
    "ends": "end",
    "begins": "begin",
    "starts": "start",
    "opens": "open",
    "closes": "close",
}
_MADE = {
    "founded": "founded", "written": "wrote", "designed": "designed", "developed": "developed", "built": "built",
    "published": "published", "created": "created", "directed": "directed", "produced": "produced",
    "invented": "invented", "discovered": "discovered", "introduced": "introduced", "launched": "launched",
    "funded": "funded", "owned": "owned", "operated": "operated", "edited": "edited", "painted": "painted",
    "composed": "composed", "approved": "approved", "signed": "signed", "acquired": "acquired", "led": "led",
    "prepared": "prepared", "sponsored": "sponsored", "established": "established", "proposed": "proposed",
}  # fmt: skip
_DOES = {past: past for past in (*_MADE.values(), "ordered", "appointed", "won", "announced", "chaired", "invented")}
_NAME = r"(?:[A-Z]\.|[A-Z][\w’'&-]*)"
_AGENT = rf"(?P<answer>(?:the )?{_NAME}(?: (?:{_NAME}|of|the|and|de|von|van)){{0,6}})(?<!\bthe)(?<!\band)(?<!\bof)"
_OVER = r"(?=[,.;]|$| (?:in|on|at|and|which|who|that|as|with|for|from)\b)"


def _was(match: "re.Match[str]", subject: Subject) -> Written:
    return f"When {match['is']} {subject.text} {match['verb']}{match['more']}?"


def _opened(match: "re.Match[str]", subject: Subject) -> Written:
    """Of "Founded in 1912, the yard ..." and "The yard: founded in 1912"."""
    if not subject.named and not subject.definite:
        return None
    return f"When {'were' if subject.plural and not subject.named else 'was'} {subject.text} {match['first'].lower()}?"


def _did(match: "re.Match[str]", subject: Subject) -> Written:
    if not match["more"] and match["verb"] not in _ALONE:
        return None
    return f"When did {subject.text} {_PAST[match['verb']]}{match['more']}?"


def _does(match: "re.Match[str]", subject: Subject) -> Written:
    return None if subject.plural else f"When does {subject.text} {_EXPIRING[match['verb']]}?"


def _where(match: "re.Match[str]", subject: Subject) -> Written:
    return f"Where {match['is']} {subject.text} {match['verb']}?"


def _who_made(match: "re.Match[str]", subject: Subject) -> Written:
    tense = _MADE[match["verb"]]
    if not (subject.definite or subject.named):
        return None
    if match["is"] in {"is", "are"}:
        return f"Who {tense.removesuffix('d') + 's'} {subject.text}?" if tense in {"operated"} else None
    return f"Who {tense} {subject.text}?"


def _who_did(match: "re.Match[str]", subject: Subject) -> Written:
    if not subject.named or (match["object"].split()[-1].islower() and match["object"][0].isupper()):
        return None
    return f"Who {match['verb']} {match['object']}?"


_REST = (
    r"(?P<more>(?: (?!in\b|on\b|and\b|or\b|to\b|that\b|as\b|would\b|will\b|was\b|were\b|is\b|are\b|had\b|has\b|it\b)"
    r"[\w’'&-]+){0,6}?)"
)
_VERB = r"(?:is|are|was|were|has|had|[a-z]{3,}(?<!s)(?:s|ed))\b"
_PLACE = r"(?:in|at|on|near|between|along|inside|outside|north of|south of|east of|west of)"
EVENTS = (
    Rule(re.compile(rf"{SUBJECT} {_BE} {_PARTICIPLE} (?:in|on) (?P<answer>{DATE}){TAIL}"), "time", _was),
    Rule(
        re.compile(rf"(?:In|On) (?P<answer>{DATE}),? {SUBJECT} {_BE} {_PARTICIPLE}(?=[,.;]|$| (?:in|by)\b){TAIL}"),
        "time",
        _was,
    ),
    Rule(
        re.compile(rf"(?P<first>{_OPENER}) (?:in|on) (?P<answer>{DATE})(?: by [^,;]{{3,60}})?, {SUBJECT} {_VERB}"),
        "time",
        _opened,
    ),
    Rule(
        re.compile(rf"{SUBJECT}(?: \([^()]{{2,60}}\))?: (?P<first>{_OPENER}) (?:in|on) (?P<answer>{DATE})"),
        "time",
        _opened,
    ),
    Rule(re.compile(rf"{SUBJECT} (?P<verb>{any_of(_PAST)}){_REST} (?:in|on) (?P<answer>{DATE}){TAIL}"), "time", _did),
    Rule(
        re.compile(rf"(?:In|On) (?P<answer>{DATE}),? {SUBJECT} (?P<verb>{any_of(_PAST)}){_REST}(?=[.;](?:\s|$)|$)"),
        "time",
        _did,
    ),
    Rule(re.compile(rf"{SUBJECT} (?P<verb>{any_of(_EXPIRING)}) (?:in|on|at) (?P<answer>{DATE})"), "time", _does),
    Rule(re.compile(rf"{SUBJECT} {_BE} (?P<verb>{any_of(_MADE)}) by {_AGENT}{TAIL}"), "person", _who_made),
    Rule(re.compile(rf"(?P<answer>{SUBJECT}) (?P<verb>{any_of(_DOES)}) {OBJECT}{_OVER}{TAIL}"), "person", _who_did),
    Rule(
        re.compile(
            rf"{SUBJECT} {_BE} (?P<verb>located|situated|based|headquartered|held|born|buried|kept|stored)"
            rf" (?P<answer>{_PLACE} [^,.;()]{{2,80}})"
        ),
        "place",
        _where,
    ),
)
"""The rules, the surest first."""
