"""Rules for sentences that say what something is, does or consists of.

Example:
    >>> [draft.question for rule in MEANINGS for draft in rule.drafts("A slip is a place for a boat.", Spelling(""))]
    ['What is a slip?']
"""

import re

from app.suggestions.drafts import MOST_CHARS, Rule, Written, any_of
from app.suggestions.subjects import SUBJECT, Subject, head_of

_READ_CHARS = MOST_CHARS  # of a sentence, at most
_IS = r"(?P<is>is|are|was|were)"
_PERSON = re.compile(
    r"\b(?:author|writer|poet|novelist|journalist|president|director|officer|manager|player|footballer|goalkeeper"
    r"|engineer|scientist|physicist|mathematician|chemist|biologist|professor|lawyer|attorney|justice|judge|king|queen"
    r"|emperor|politician|actor|actress|singer|musician|composer|artist|painter|founder|chairman|chairwoman|secretary"
    r"|minister|pilot|doctor|physician|nurse|teacher|historian|philosopher|prince|princess|son|daughter|brother|sister"
    r"|wife|husband|man|woman|person|economist|architect|coach|captain|striker|midfielder|inventor|explorer|consultant"
    r"|specialist|expert|leader|member|developer|programmer|analyst|researcher|fellow|student|graduate|administrator)\b"
)
_FIRM = re.compile(
    r"\b(?:Inc|Corporation|Corp|Limited|Ltd|LLC|Company|University|Association|Agency|Act|System|Project|Group"
    r"|Institute|Department|Office|Program|Programme|Council|Club|Bank|Party|Plan|Model|Service|Services|Network)\b|\("
)
# "What is X?" is no question for an opinion or a comparison.
_NO_MEANING = re.compile(
    r"(?:an?|the) (?:(?:very|most|more|less|too|so|quite|rather) |\w+(?:est|er) (?:of|than)|(?:result|matter|lot|few"
    r"|bit|part|good|great|key|major|significant|important|better|best|must|challenge|risk|same|only|case|fact|first|second"
    r"|third|last|next|fine|big|huge|large|small|little|long|short|high|low|new|old|true|real|nice|perfect|right|wrong"
    r"|subject|responsibility|date|number|common|popular|useful|powerful|simple|true)\b)"
)
_VALUES = frozenset(
    """purpose aim goal objective mission vision role function cause capital budget cost price deadline length
    height width depth size weight total rate value headquarters name focus scope duration population average
    maximum minimum speed temperature limit fee capacity distance term fine penalty fare motto symbol currency
    language salary goals objectives aims tasks age date location address""".split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
_CONTENT = {
    "consists of": "consist of", "comprises": "comprise", "includes": "include", "contains": "contain",
    "requires": "require", "depends on": "depend on", "refers to": "refer to", "stands for": "stand for",
    "consist of": "consist of", "include": "include", "contain": "contain", "require": "require",
    "depend on": "depend on", "refer to": "refer to", "eat": "eat", "eats": "eat", "offers": "offer", "offer": "offer",
    "supports": "support", "support": "support", "covers": "cover", "cover": "cover", "describes": "describe",
    "defines": "define", "focuses on": "focus on", "leads to": "lead to", "causes": "cause", "produces": "produce",
    "measures": "measure", "represents": "represent", "provides": "provide", "aims to": "aim to do",
    "sells": "sell", "manufactures": "manufacture", "specifies": "specify", "means": "mean",
    "relies on": "rely on", "rely on": "rely on", "belongs to": "belong to", "deals with": "deal with",
    "results in": "result in", "helps": "help", "allows": "allow", "enables": "enable", "prevents": "prevent",
    "protects": "protect", "replaces": "replace", "controls": "control", "connects": "connect",
    "outperforms": "outperform", "uses": "use", "answers": "answer", "determines": "determine", "governs": "govern",
    "prohibits": "prohibit", "assesses": "assess", "summarises": "summarise", "summarizes": "summarize",
}  # fmt: skip
_ABOUT = {
    "responsible for": "responsible for", "known as": "known as", "used for": "used for", "used to": "used for",
    "called": "called", "made of": "made of", "composed of": "composed of", "based on": "based on",
    "named after": "named after", "divided into": "divided into", "eligible for": "eligible for",
    "designed to": "designed to do", "intended to": "intended to do", "designed for": "designed for",
    "required to": "required to do", "limited to": "limited to", "caused by": "caused by",
}  # fmt: skip

_ACTS = {verb: base for verb, base in _CONTENT.items() if verb.endswith("s") and verb != "means"}
_REST = r"(?!that\b|for\b|the following\b)[^,.;:()“”\"]{15,110}"
_REST += r"(?=[.;](?:\s|$)|, (?:with|which|who|where|when|but|including|having|as)\b|$)"
_LEAST_SPACES = 4
_LOOKED_AT = 60  # characters that tell whether somebody is meant
_POINTS = re.compile(r"\b(?:it|its|they|their|them|this|these|those|such|he|his|she|her|we|our|us|you|your|I|my)\b")


def _told(match: "re.Match[str]", subject: Subject) -> Written:
    return None if subject.bare else f"What {match['is']} {subject.text} {_ABOUT[match['verb']]}?"


def _value(match: "re.Match[str]", subject: Subject) -> Written:
    head = head_of(subject.text)
    superlative = subject.definite and re.search(r"\b[a-z]{3,}est\b", subject.text)
    if not superlative and not (subject.definite and head in _VALUES):
        return None
    return f"What {match['is']} {subject.text}?"


def _meaning(match: "re.Match[str]", subject: Subject) -> Written:
    if subject.bare or _NO_MEANING.match(match["answer"]):
        return None
    person = _PERSON.search(match["answer"][:_LOOKED_AT]) is not None
    if person and " " not in subject.text:
        return None  # "Microsoft"
    if person:
        return (f"Who {match['is']} {subject.text}?", "person") if subject.named else None
    if subject.named and " " in subject.text and not _FIRM.search(subject.text):
        return None  # it may be a person
    return f"What {match['is']} {subject.text}?"


def _content(match: "re.Match[str]", subject: Subject) -> Written:
    third = match["verb"].split()[0].endswith("s")
    if subject.bare or third == subject.plural:
        return None
    return f"What {'does' if third else 'do'} {subject.text} {_CONTENT[match['verb']]}?"


def _which(match: "re.Match[str]", subject: Subject) -> Written:
    """Of "X is the chairman of Y": its subject is asked for, in the sentence's own words."""
    rest = match["rest"]
    if (subject.bare and not subject.named) or _NO_MEANING.match(rest) or not _stands_alone(rest):
        return None
    person = _PERSON.search(rest[:_LOOKED_AT]) is not None
    if person and not subject.named:
        return None
    return f"{'Who' if person else 'What'} {match['is']} {rest}?", "person" if person else "meaning"


def _does_which(match: "re.Match[str]", subject: Subject) -> Written:
    if subject.bare or subject.plural or not _stands_alone(match["rest"]):
        return None
    return f"What {match['verb']} {match['rest']}?"


def _stands_alone(rest: str) -> bool:
    """Whether the rest of a sentence is long enough to be found by, and names all that it speaks of."""
    return rest.count(" ") >= _LEAST_SPACES and _POINTS.search(rest) is None


def _from_what(match: "re.Match[str]", subject: Subject) -> Written:
    if subject.bare:
        return None
    return f"What {match['is']} {subject.text} {match['verb']}?"


MEANINGS = (
    Rule(
        re.compile(
            rf"{SUBJECT} {_IS} (?P<verb>(?:[a-z]{{3,}}ed|drawn|known|made|built|taken|given)"
            r" (?:from|with|for|into|as|of|under)) (?P<answer>[^,.;:()]{3,90})"
        ),
        "content",
        _from_what,
    ),
    Rule(re.compile(rf"(?P<answer>{SUBJECT}) (?P<is>is|was) (?P<rest>the {_REST})"), "meaning", _which),
    Rule(re.compile(rf"(?P<answer>{SUBJECT}) (?P<verb>{any_of(_ACTS)}) (?P<rest>{_REST})"), "content", _does_which),
    Rule(re.compile(rf"{SUBJECT} {_IS} (?P<verb>{any_of(_ABOUT)}) (?P<answer>[^;]{{3,160}})"), "content", _told),
    Rule(
        re.compile(rf"{SUBJECT} {_IS} (?P<answer>(?:to|an?|the|[A-Z]|set at|limited to)\b[^;()]{{3,200}})"),
        "value",
        _value,
    ),
    Rule(re.compile(rf"{SUBJECT} {_IS} (?P<answer>(?:an?|the|any) [^;]{{8,220}})"), "meaning", _meaning),
    Rule(re.compile(rf"{SUBJECT} (?P<verb>{any_of(_CONTENT)}) (?P<answer>[^;]{{4,160}})"), "content", _content),
)
"""The rules, the surest first."""
