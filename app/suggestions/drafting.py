"""Drafts the questions of a whole document from its chunks, and puts the most promising first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.answering.languages.recognition import is_english, language_of, language_of_prose
from app.answering.languages.table import ENGLISH
from app.suggestions.amounts import AMOUNTS
from app.suggestions.drafts import MOST_CHARS, Draft, Form
from app.suggestions.events import EVENTS
from app.suggestions.lines import asked_by_text, line_drafts
from app.suggestions.meanings import MEANINGS
from app.suggestions.rows import row_drafts
from app.suggestions.subjects import Spelling
from retrieval.types import Chunk, Span
from retrieval.units import units_of
from retrieval.words import terms

MOST_CHUNKS = 120
"""Only the first of a document are read: a minute of a book says enough of it."""

_MOST_OF_FORM = 5  # drafts of one form among those that are tried: others may do better
_MOST_OF_CHUNK = 4
_WORD_WEIGHT, _MOST_WORDS = 0.2, 8  # a question of more words is answered more surely
_ROWS_ABOVE = 6
_LEAD = re.compile(r"(?:[ \t\n#>*•-]|\[[\d, ]{1,9}\])*")  # bullets, and the numbers of notes to the sentence before
_OPENING = re.compile(
    r"(?:However|Therefore|Thus|Also|In addition|Moreover|Furthermore|Today|Currently|Overall|Note that)"
    r"(?:, | (?=the\b))"
)
_WHOLE = {
    "de": "Worum geht es in diesem Dokument?",
    "es": "¿De qué trata este documento?",
    "fr": "De quoi parle ce document ?",
}
_WHOLE_ENGLISH = "What is this document about?"
_LOOKED_AT = 20_000  # characters that tell a document's language
_RANKS: dict[Form, int] = {"time": 0, "number": 0, "meaning": 1, "person": 0, "place": 0, "content": 1, "value": 1}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A question, and where the document answers it. Spans are characters of the document version.

    Attributes:
        question: Its text.
        sentence: The sentence or row that it was made from.
        answer: The words in it that answer.
        form: What is asked for.
    """

    question: str
    sentence: Span
    answer: Span
    form: Form


def proposals(chunks: Sequence[Chunk], *, limit: int) -> list[Proposal]:
    """At most `limit` questions, the most promising first; none of a document that is in another language than English.

    Args:
        chunks: Of one document version, in document order.
        limit: How many are tried at most.
    """
    read = chunks[:MOST_CHUNKS]
    text = "\n".join(chunk.text for chunk in read)
    language = language_of(text[:_LOOKED_AT])
    if language not in {ENGLISH, None}:  # a table may have too few words to tell
        return []
    spelling = Spelling(text)
    found: dict[str, tuple[float, int, Proposal]] = {}
    for place, chunk in enumerate(read):
        for at, draft in _of_chunk(chunk, spelling, english=language == ENGLISH):
            if not is_english(draft.question):
                continue
            start = chunk.start_char + at.start_char
            proposal = Proposal(
                draft.question,
                Span(start, chunk.start_char + at.end_char),
                Span(start + draft.answer.start_char, start + draft.answer.end_char),
                draft.form,
            )
            found.setdefault(
                draft.question.casefold(),
                (_RANKS[draft.form] - _WORD_WEIGHT * min(_MOST_WORDS, len(terms(draft.question))), place, proposal),
            )
    ordered = sorted(found.values(), key=lambda one: (one[0], one[1], one[2].sentence.start_char))
    return _varied((proposal, place) for _, place, proposal in ordered)[:limit]


def asks_for_whole(chunks: Sequence[Chunk]) -> str:
    """The question what a document is about, in its own language where that is known to be understood.

    >>> asks_for_whole(chunks_of("Dieses Skript ist im Wintersemester für die Vorlesung entstanden."))
    'Worum geht es in diesem Dokument?'
    """
    text = "\n".join(chunk.text for chunk in chunks[:MOST_CHUNKS])
    return _WHOLE.get(language_of_prose(text[:_LOOKED_AT]) or ENGLISH, _WHOLE_ENGLISH)


def _of_chunk(chunk: Chunk, spelling: Spelling, *, english: bool) -> Iterator[tuple[Span, Draft]]:
    """The drafts of a chunk, each with the characters of the chunk that it was made from."""
    prose = language_of_prose(chunk.text) == ENGLISH
    rows: list[str] = []
    asked = ""
    for unit in units_of(chunk.text):
        core = chunk.text[unit.core.start_char : unit.core.end_char]
        if "|" in core:
            for draft in row_drafts(core, above=rows[-_ROWS_ABOVE:], spelling=spelling, english=english):
                yield unit.core, draft
            rows.append(core)
            asked = ""
            continue
        rows = []
        start, end = _stripped(core)
        sentence = core[start:end]
        at = Span(unit.core.start_char + start, unit.core.start_char + end)
        if asked and len(sentence) <= MOST_CHARS:
            yield at, Draft(asked, Span(0, len(sentence)), "content")
        asked = (asked_by_text(sentence) or "") if prose else ""
        if prose and not unit.heading and not asked:
            for draft in _of_sentence(sentence, spelling):
                yield at, draft


def _of_sentence(sentence: str, spelling: Spelling) -> Iterator[Draft]:
    """The questions that a sentence answers, the surest form first."""
    if found := list(line_drafts(sentence)):
        yield from found
        return
    line = sentence.replace("\n", " ")
    if "  " in line:
        return
    opening = _OPENING.match(line)
    at = opening.end() if opening else 0
    line = line[at:]
    if opening and line[:1].islower():
        line = line[0].upper() + line[1:] if line.startswith(("the ", "a ", "an ")) else line
    for rule in (*EVENTS, *AMOUNTS, *MEANINGS):
        for draft in rule.drafts(line, spelling):
            yield Draft(draft.question, Span(draft.answer.start_char + at, draft.answer.end_char + at), draft.form)


def _stripped(core: str) -> tuple[int, int]:
    """A sentence without the heading, the bullet or the white space before it."""
    end = len(core.rstrip())
    start = core.rfind("\n\n", 0, end) + 2 if "\n\n" in core[:end] else 0
    lead = _LEAD.match(core[start:])
    return start + (lead.end() if lead else 0), end


def _varied(ordered: Iterable[tuple[Proposal, int]]) -> list[Proposal]:
    """The proposals with those that repeat a form or a chunk too often put last."""
    forms: Counter[Form] = Counter()
    places: Counter[int] = Counter()
    first, last = [], []
    for proposal, place in ordered:
        if forms[proposal.form] < _MOST_OF_FORM and places[place] < _MOST_OF_CHUNK:
            forms[proposal.form] += 1
            places[place] += 1
            first.append(proposal)
        else:
            last.append(proposal)
    return first + last
