"""Rewrites follow-up questions by rules, so that they are understood and found without the conversation.

The rules are for English and look at surface forms only. A question that refers to nothing before it stays unchanged,
character for character; so does a question whose reference has no antecedent in the conversation.
"""

import re
from collections.abc import Sequence

from app.answering.languages.noun_phrases import (
    AUXILIARIES,
    CONJUNCTIONS,
    DEMONSTRATIVES,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    TIMES,
    WH,
    head,
    names,
    topic,
    words,
)
from app.answering.languages.question_kind import Use, amount_pattern
from app.answering.languages.small_talk import small_talk
from app.answering.question import Message
from app.answering.understanding.followup.antecedents import Exchange, antecedent
from app.answering.understanding.followup.history import newest
from app.answering.understanding.followup.people import role
from app.answering.understanding.followup.references import pointing, resolved

__all__ = ["Exchange", "exchanges_of", "stand_alone"]

_LONGEST = 600  # characters; longer texts are not rewritten
_LONGEST_FRAGMENT = 6  # words
_DATE = re.compile(
    r"(?:(?:\d{1,2} )?(?:" + "|".join(sorted(month.capitalize() for month in TIMES)) + r")(?: \d{1,2},?)? ?)?"
    r"\b(?:1\d{3}|20\d{2})\b"
)
_MORE = re.compile(
    r"(?:(?:and|but|so|ok|okay)[, ]+)?(?:"
    r"why(?: (?:not|so|exactly|is that|was that|did (?:that|this|it) happen))?|how(?: so| come| exactly)?"
    r"|(?:when|where|how)(?: exactly)? did (?:that|this|it) (?:happen|occur)"
    r"|(?:when|where|who)(?: exactly| else)?|what(?: else)?|any(?:one|thing) else|something else"
    rf"|which(?: ones?)?|how {amount_pattern(Use.FOLLOW_UP)}(?: of (?:them|these|those))?"
    r"|(?:by|for|since|until|at|to|from|with) (?:how (?:much|many|long)|when|whom|what)"
    r"|really|are you sure|is that (?:all|right|true|so)|like what|such as|for (?:example|instance)|examples?"
    r"|(?:please )?(?:explain|elaborate|go on|continue|tell me more|say more|(?:more )?details?|more)(?: please)?"
    r"|(?:please )?summari[sz]e(?: (?:it|that|this))?"
    r"|(?:can|could) you (?:explain|elaborate|tell me more|say more|give (?:me )?(?:an example|examples|more details))"
    r"(?: (?:that|this|it))?(?: please)?"
    r"|what (?:does|did) (?:that|this|it) mean|what do you mean(?: by (?:that|this|it))?"
    r"|who (?:says|said) (?:so|that|this)"
    r")\W*",
    re.IGNORECASE,
)
_WHICH_ONE = re.compile(r"(?:and )?which ones?\b.*", re.IGNORECASE | re.DOTALL)
_OWN = re.compile(r"[^a-z\W][\w. -]*['’]s")
_ARTICLE = re.compile(r"^(?:the|a|an) ", re.IGNORECASE)
_LEADING = re.compile(r"(?:and|but|so|ok|okay)[, ]+", re.IGNORECASE)
_ABOUT = re.compile(r"(?:(?:and|but|so|ok|okay)[, ]+)?(?:what|how) about (?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_AND = re.compile(r"(?:and|or|but)[, ]+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
# The opening of a question that another question word can replace.
_ASKS = re.compile(
    rf"(?:when|where|why|how|(?:by |for |since )?how {amount_pattern(Use.OPENING)}|in (?:which|what) year)\s+"
    rf"(?=(?:{'|'.join(sorted(AUXILIARIES))})\b)",
    re.IGNORECASE,
)
_IMPERATIVES = frozenset("tell give show list explain describe compare name summarise summarize say please".split())  # noqa: SIM905
# Words that begin questions in other languages too, and the second words that show that the question is English.
_SHARED = frozenset(("an", "in", "me", "was"))
_BEHIND_SHARED = (DETERMINERS | PRONOUNS | WH | frozenset(("this", "that", "these", "those", "there"))) - {"was"}
_ENGLISH = (
    WH | AUXILIARIES | DETERMINERS | PREPOSITIONS | CONJUNCTIONS | PRONOUNS | DEMONSTRATIVES | _IMPERATIVES
) - _SHARED


def stand_alone(question: str, before: Sequence[Exchange]) -> str:
    """`question` rewritten to be understood without the exchanges `before` it, oldest first.

    Of these the newest `HISTORY_CHARACTERS` characters are read.

    >>> stand_alone("And in 2021?", [Exchange("What was revenue in 2020?", "8 million euros [1].")])
    'What was revenue in 2021?'

    Returns:
        The question itself where it refers to nothing before it, or no antecedent is found.
    """
    text = " ".join(question.split())
    if not before or not text or len(text) > _LONGEST or small_talk(text) is not None:
        return question
    before = newest(before)
    last = before[-1]
    if _english(text):
        rewritten = _more(text, last) or _fragment(text, before) or resolved(text, before)
    elif _english(last.question):
        rewritten = _fragment(text, before) or text  # "Germany?"
    else:
        return question
    return question if rewritten == text or len(rewritten) > _LONGEST else rewritten


def _more(text: str, last: Exchange) -> str | None:
    """The rewriting of a question without content of its own ("Why?") about the last question; None for others."""
    if _MORE.fullmatch(text) is None and _WHICH_ONE.fullmatch(text) is None:
        return None
    asked = _stem(last.question)
    bare = _LEADING.sub("", text).rstrip("?.! ").lower()
    if bare in {"why", "when", "where", "how"}:
        first = words(asked)[:1]
        if _ASKS.match(asked):
            return f"{bare.capitalize()} {_ASKS.sub('', asked, count=1)}?"
        if first and first[0].low in AUXILIARIES:
            return f"{bare.capitalize()} {asked[0].lower()}{asked[1:]}?"
    return f"{asked}: {bare}{'?' if text.endswith('?') else '.'}"


def _fragment(text: str, before: Sequence[Exchange]) -> str | None:
    """The last question with one part replaced by a fragment (`and in 2021?`, `what about Oslo?`).

    None where the text is no fragment.
    """
    piece = _piece(text)
    if piece is None:
        return None
    preposition, rest = piece
    asked = before[-1].question
    if _OWN.fullmatch(rest):
        return _another_name(asked, rest[:-2], preposition)
    if not names(rest):
        restored = pointing(f"x {rest}", before)[2:]
        if restored != rest and not names(restored):
            return f"What about {f'{preposition} ' if preposition else ''}{restored}?"  # "his medical certificate"
        rest = restored
    bare = _ARTICLE.sub("", rest)
    if _DATE.fullmatch(rest):
        rewritten = _another_date(asked, rest, preposition)
    elif names(f"x {bare}") == [bare]:
        rewritten = _another_name(asked, rest, preposition)
    elif preposition:
        rewritten = f"{_stem(asked)} {preposition} {rest}?"
    else:
        rewritten = _another_noun(before, rest)
    return rewritten


def _piece(text: str) -> tuple[str, str] | None:
    """A fragment's preposition, "" without one, and the rest of it; None for a text that is no fragment."""
    about = _ABOUT.fullmatch(text) or _AND.fullmatch(text)
    rest = (about["rest"] if about else text).strip().rstrip("?.! ").strip()
    tokens = words(rest)
    if not tokens or len(tokens) > _LONGEST_FRAGMENT or any(word.low in AUXILIARIES | WH for word in tokens):
        return None
    preposition = tokens[0].low if tokens[0].low in PREPOSITIONS and len(tokens) > 1 else ""
    if about is None and not preposition and not _DATE.fullmatch(rest) and names(f"{rest}?") != [rest]:
        return None
    return preposition, rest[len(preposition) :].strip()


def _stem(question: str) -> str:
    return question.strip().rstrip("?.! ")


def _another_date(asked: str, date: str, preposition: str) -> str:
    found = list(_DATE.finditer(asked))
    if not found:
        return f"{_stem(asked)} {preposition or 'in'} {date}?"
    start, end = found[-1].span()
    begins = asked[:start].rstrip()
    before = begins.rsplit(" ", 1)[-1].lower()
    if preposition and before in PREPOSITIONS:
        begins = f"{begins[: -len(before)]}{preposition}"
    return f"{begins} {date}{asked[end:]}"


def _another_name(asked: str, name: str, preposition: str) -> str:
    """The question with a name replaced: the name behind the same preposition, else the closest in length."""
    known = [other for other in names(asked) if other.casefold() not in name.casefold()]
    if preposition:
        behind = [other for other in known if re.search(rf"\b{preposition}\s+(?:the\s+)?{re.escape(other)}", asked)]
        if not behind:
            return f"{_stem(asked)} {preposition} {name}?"
        known = behind
    if not known:
        return f"{_stem(asked)}: what about {name}?"
    other = min(known, key=lambda other: abs(len(other.split()) - len(name.split())))
    replaced = _ARTICLE.sub("", name) if f"the {other}" in asked else name
    return asked.replace(other, replaced)


def _another_noun(before: Sequence[Exchange], noun: str) -> str:
    """The question about another property of the same thing."""
    asked = before[-1].question
    phrase = topic(asked)
    if names(noun):
        return f"What about {noun}?"
    bare = _ARTICLE.sub("", noun)
    person = role(asked)
    if person is not None and role(f"the {bare}") == f"the {bare}":
        return asked.replace(person, noun) if person in asked else f"{_stem(asked)}: what about {noun}?"
    if phrase is not None and names(phrase):
        owned = re.fullmatch(r"(?P<owner>.*?['’]s )(?P<thing>.+)", phrase)
        if owned:
            return asked.replace(phrase, f"{owned['owner']}{bare}")
        of = re.fullmatch(r"(?:the |)(?P<thing>[^A-Z]+?) (?P<of>of|in|for|at) (?P<rest>.+)", phrase)
        if of and head(phrase) == words(of["thing"])[-1].low:
            return asked.replace(phrase, f"the {bare} {of['of']} {of['rest']}")
    whose = antecedent("thing", before)
    return f"What about {noun}?" if whose is None else f"What about the {bare} of {whose}?"


def exchanges_of(messages: Sequence[Message]) -> list[Exchange]:
    """The newest messages of a user and an assistant as exchanges, each question rewritten to stand alone.

    At most `HISTORY_CHARACTERS` characters of the messages are read. Small talk is left out.
    """
    said: list[tuple[str, list[str]]] = []
    for message in messages:
        if message.role == "user":
            said.append((message.content, []))
        elif said:
            said[-1][1].append(message.content)
    exchanges: list[Exchange] = []
    for exchange in newest([Exchange(question, " ".join(answers).strip()) for question, answers in said]):
        exchanges.append(Exchange(stand_alone(exchange.question, exchanges), exchange.answer))
    return [exchange for exchange in exchanges if small_talk(exchange.question) is None]


def _english(text: str) -> bool:
    """Whether it begins as English questions and fragments do."""
    tokens = [word.low for word in words(text)[:2]]
    if not tokens:
        return False
    return tokens[0] in _ENGLISH or (tokens[0] in _SHARED and tokens[-1] in _BEHIND_SHARED)
