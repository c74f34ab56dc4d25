"""Finds what only points to other works: the entries of a list of references, and sentences that are citations alone.

Surface rules, for the usual English styles. An entry needs authors at its beginning, a year, and something that only
an entry has: pages, a volume, a publisher, an address.
"""

import re
from collections.abc import Iterator

from retrieval.memo import remembered
from retrieval.types import Span

_MOST_CHARS = 700  # of an entry; longer paragraphs are notes that say something
_MOST_AUTHORS = 8  # beyond the first; a list of them can be cut in several ways, so that time grows with its power
_MOST_ANNOUNCING = 12  # words above the entries: "References", "The following works are cited:"

_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_NUMBER = r"(?:\[?\d{1,3}[\].)]\s*|[-*•]\s+)?"
_CAPITAL = "[A-ZÀ-ÖØ-ÞĄĆČĐŁŃŚŠŻŽ]"
_SURNAME = rf"{_CAPITAL}[\w'’-]+\b(?: {_CAPITAL}[\w'’-]+\b)?"
_INITIALS = rf"(?:{_CAPITAL}\.[ -]?){{1,4}}"
_LEADING = rf"(?:{_CAPITAL}\.[ -]?+){{1,4}}+"
_GIVEN = rf"{_CAPITAL}[\w-]+\b(?: {_INITIALS})?"
_AUTHOR = rf"(?:{_SURNAME}(?:, (?:{_INITIALS}|{_GIVEN})| [A-Z]{{2,3}}\b| [A-Z](?=[,:;]| \())|{_LEADING}{_SURNAME})"
_AUTHORS = rf"{_AUTHOR}(?:(?:,? and |,? & |, |; ){_AUTHOR}){{0,{_MOST_AUTHORS}}}(?:,? et al\.?)?(?:,? \(?[Ee]ds?\.\)?)?"
_BODY = rf"{_CAPITAL}[^.()\n|:]{{2,80}}(?=\s\({_YEAR}\)\. {_CAPITAL})"  # an organisation, directly before a year
_ENTRY = re.compile(
    rf"{_NUMBER}(?:{_BODY}|{_AUTHORS}[.,:]?\s*"
    rf"(?:\((?:[^()\n]{{0,20}} )?{_YEAR}\)|[“\"‘']|(?<=[.,:]\s)(?:{_CAPITAL}|{_YEAR}[.,;])))"
)
_HAS_YEAR = re.compile(rf"\b{_YEAR}\b")
_ADDRESS = re.compile(
    r"\[?\d{1,3}[\].)]\s*[“\"‘'][^“”\"\n]{3,200}[”\"’'][.,]?\s*\(?\w+://\S"
)  # of a web page, with its title
_IMPRINT = re.compile(
    rf"\b\d+\s*\(\d+(?:[-–]\d+)?\)|\({_YEAR}\):|\bpp?\.\s*\d|\bvol(?:ume)?\.?\s*\d|\bno\.\s*\d|\d\s*:\s*[eA-Z]?\d+"
    r"|\bdoi\b|://|\barXiv\b|\bIn: |\bProc(?:eedings|\.)|\bPress\b|\bPublish|\beds?\.|\bRetrieved\b|\bISSN\b"
    r"|\bISBN\b|\([Aa]ccessed\b",
)
_ENTRY_STARTS = re.compile(rf"\n+|(?<=\S)[ \t]+(?=\[\d{{1,3}}\] {_CAPITAL}|\d{{1,3}}\. {_CAPITAL}[\w'’-]+, {_CAPITAL})")
_NUMBERED = re.compile(r"\[?\d{1,3}[\].)](?:\s|$)")
_LABEL = re.compile(r"[^\W\d_][\w ]{0,30}:\s")

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)\b"
_PLACE = r"\d+[\w().:–-]*(?:, ?\d[\w().:–-]*)*"
_REPORTER = rf"(?!{_MONTH})(?:(?:[A-Z][A-Za-z]{{0,7}}\.\s?){{2,5}}(?:\d[a-z]{{1,2}}\s)?|F\.\s?(?:2d|3d|4th)\s|Stat\.\s)"
_LAW = (
    rf"\d+\s(?:{_REPORTER}(?:§+\s?)?|(?:[A-Z][A-Za-z]*+\.?+\s?+){{1,5}}+§+\s?){_PLACE}(?: at \d+)?"
    rf"(?:\s\([^()]{{0,40}}{_YEAR}\))?"
)
_PAGES = rf"(?:at |pp?\. ?|§+ ?|note |n\. ?){_PLACE}"
_PARTY = r"[A-Z][\w'’.&-]*(?:,? (?:[A-Z][\w'’.&-]*|of|the|and|&|ex|rel\.|in|re)){0,8}"
_CITED = (
    rf"(?:{_LAW}|{_PARTY} v\. {_PARTY}, {_LAW}"
    rf"|(?:[Ii]bid|[Ii]d|[Oo]p\. ?cit|[Ll]oc\. ?cit)\.(?:,? (?:{_PAGES}|{_PLACE}))?"
    rf"|(?:[A-Z][\w'’-]+, )?(?:supra|infra)(?:,? {_PAGES}){{0,2}}|{_PAGES}|doi: ?\S+"
    rf"|{_SURNAME},? {_YEAR},? {_PAGES}|\[\d+(?: ?[,;–-] ?\d+)*\]"
    rf"|(?!{_MONTH}){_SURNAME}(?: et al\.?| (?:and|&) {_SURNAME}),? \(?{_YEAR}\)?"
    rf"|\((?!{_MONTH}){_SURNAME}(?: et al\.?| (?:and|&) {_SURNAME})?, {_YEAR}\))"
)
_SIGNAL = r"(?:(?:see|see also|see generally|but see|cf\.|compare|accord|e\.g\.)(?:,? e\.g\.,?)?\s)?"
# Possessive: a text that could be cut into citations in many ways takes no longer.
_CITATION = re.compile(rf"(?:\d{{1,3}}\.\s)?[\s(\[*•-]*(?:(?i:{_SIGNAL}){_CITED}[\s.,;)]*(?:and )?)++[\s.;,)\]]*")


def is_citation(text: str) -> bool:
    """Whether a sentence consists of citations alone.

    >>> is_citation("See 28 U.S.C. § 589b."), is_citation("The fee is set by 28 U.S.C. § 589b.")
    (True, False)
    """
    return len(text) <= _MOST_CHARS and _CITATION.fullmatch(text) is not None


@remembered
def reference_entries(text: str) -> tuple[Span, ...]:
    r"""The characters of the entries of lists of references in `text`, in reading order.

    >>> reference_entries("See below.\n\n[1] Doe, J. Marks. Nature 5 (2004): 1-9.")
    (Span(start_char=12, end_char=52),)
    """
    return tuple(span for span in _segments(text) if _is_entry(text[span.start_char : span.end_char]))


def refers_only(text: str, span: Span) -> bool:
    """Whether the unit at `span` of `text` is citations alone, or entries below no more than their announcement."""
    unit = text[span.start_char : span.end_char]
    if is_citation(unit):
        return True
    rest, at = "", span.start_char
    for entry in reference_entries(text):
        if entry.start_char < span.end_char and span.start_char < entry.end_char:
            rest += text[at : max(at, entry.start_char)]
            at = min(entry.end_char, span.end_char)
    if at == span.start_char:
        return False
    rest = (rest + text[at : span.end_char]).strip()
    return len(rest.split()) <= _MOST_ANNOUNCING and not rest.endswith((".", "!", "?"))


def _segments(text: str) -> Iterator[Span]:
    """The lines that could be entries; one that goes on in lines with no beginning of an entry takes them."""
    start = 0
    for gap in (*(match.span() for match in _ENTRY_STARTS.finditer(text)), (len(text), len(text))):
        wrapped = text[slice(*gap)] == "\n" and not _opens(text, gap[1]) and not _LABEL.match(text, gap[1])
        if wrapped and (_ENTRY.match(text, start) or _ADDRESS.match(text, start)) and gap[1] - start <= _MOST_CHARS:
            continue
        if start < gap[0]:
            yield Span(start, gap[0])
        start = gap[1]


def _opens(text: str, at: int) -> bool:
    """Whether a line that begins at `at` could be the first of an entry."""
    return bool(_NUMBERED.match(text, at) or _ENTRY.match(text, at))


def _is_entry(segment: str) -> bool:
    if len(segment) > _MOST_CHARS or "|" in segment:
        return False
    if _ADDRESS.match(segment):
        return True
    return bool(_ENTRY.match(segment) and _HAS_YEAR.search(segment) and _IMPRINT.search(segment))
