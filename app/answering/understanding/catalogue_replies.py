"""Replies to small talk and to questions about the documents at hand, from the catalogue and without a model.

A question about "this document" where several are in scope is replied to with the question which one is meant.

Example:
    >>> replies = CatalogueReplies(catalogue, DocumentsMeant(catalogue))
    >>> replies.reply(question)
    'Hello. There are 12 documents here. Ask what they say; each answer cites its passage.'
"""

import re

from app.answering.formats.answer_formats import ANSWER_SCHEMA, Format
from app.answering.languages.recognition import spoken
from app.answering.languages.small_talk import small_talk
from app.answering.languages.table import ENGLISH, Replies, Wish, languages
from app.answering.question import Question
from app.answering.understanding.documents.meant import DocumentsMeant
from app.db.catalogue import Catalogue, CatalogueRepository, ListedDocument

NAMED = 10
"""The most documents and collections that a reply names."""

_MOST_CHARACTERS = 120  # of a name
_MARKS = re.compile(r"([\\`*_\[\]<>|~#])")


class CatalogueReplies:
    """Replies without a model. One instance serves every request."""

    def __init__(self, catalogue: CatalogueRepository, meant: DocumentsMeant) -> None:
        self._catalogue = catalogue
        self._meant = meant

    def reply(self, question: Question) -> str | None:
        """The reply, in the question's language and format, from the documents in its scope; None for other questions.

        A question that asks for JSON by a schema of its own has none: the reply would not satisfy that schema.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
            StoreUnavailable: The database cannot be read.
        """
        if question.json_schema not in {None, ANSWER_SCHEMA}:
            return None
        talk = small_talk(question.as_asked)
        if talk is None:
            return None
        texts = languages()[talk.language].replies
        assert texts is not None, "one of its patterns matched"
        if talk.wish is Wish.THANKS:
            return texts.thanks
        catalogue = self._catalogue.of(question.scope, limit=NAMED)
        if talk.wish is Wish.DOCUMENTS:
            return _listing(texts, catalogue, form=question.format)
        first = texts.greeting if talk.wish is Wish.GREETING else texts.abilities
        ask = (texts.ask,) if catalogue.searchable else ()
        return " ".join((first, _count(texts, catalogue), *ask))

    def which(self, question: Question) -> str | None:
        """The question which document is meant, with those that may be; None where that is clear or was not asked.

        Args:
            question: With its conversation's history, which may tell the document.

        Raises:
            InvalidFilter, StoreUnavailable: As `reply`.
        """
        if question.json_schema not in {None, ANSWER_SCHEMA}:
            return None
        among = self._meant.unclear(question, limit=NAMED)
        if among is None:
            return None
        texts = spoken(question.as_asked).replies or languages()[ENGLISH].replies
        assert texts is not None, "English has them"
        sentences = [texts.which_document]
        if among.searchable > len(among.newest):
            sentences += [_count(texts, among), texts.newest.format(n=len(among.newest))]
        return f"{' '.join(sentences)}\n\n{_names(among, question.format)}"


def _count(texts: Replies, catalogue: Catalogue) -> str:
    if catalogue.searchable == 0:
        return texts.none
    return texts.one if catalogue.searchable == 1 else texts.many.format(n=catalogue.searchable)


def _listing(texts: Replies, catalogue: Catalogue, *, form: Format) -> str:
    """The number of documents, their collections where there are several, and their names, the newest first."""
    sentences = [_count(texts, catalogue)]
    if len(catalogue.collections) > 1:
        shown = [_plain(name, form) for name in catalogue.collections[:NAMED]]
        if len(catalogue.collections) > NAMED:
            shown.append("…")
        sentences.append(texts.collections.format(n=len(catalogue.collections), names=", ".join(shown)))
    if catalogue.waiting:
        sentences.append(texts.waiting.format(n=catalogue.waiting))
    if catalogue.searchable > len(catalogue.newest) > 0:
        sentences.append(texts.newest.format(n=len(catalogue.newest)))
    paragraphs = [" ".join(sentences)]
    if catalogue.newest:
        paragraphs.append(_names(catalogue, form))
    return "\n\n".join(paragraphs)


def _names(catalogue: Catalogue, form: Format) -> str:
    return "\n".join(f"- {_name(listed, form)}" for listed in catalogue.newest)


def _name(listed: ListedDocument, form: Format) -> str:
    """A document by its file, in Markdown as code so that no character of it is a mark, and by its title."""
    filename = _line(listed.filename)
    if form == "markdown":
        filename = f"`{filename.replace('`', '')}`"
    return f"{filename} ({_plain(listed.title, form)})" if listed.title and listed.title.strip() else filename


def _plain(text: str, form: Format) -> str:
    return _MARKS.sub(r"\\\1", _line(text)) if form == "markdown" else _line(text)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 1]}…"
