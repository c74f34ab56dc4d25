"""Decides by names, and by what the conversation cited, which document a question asks about as a whole."""

from app.answering.question import Question
from app.answering.understanding.documents.asking import Wanted, wanted_overview
from app.answering.understanding.documents.names import closest, names, searched
from app.answering.understanding.documents.which import named_in_reply
from app.db.catalogue import Catalogue, CatalogueRepository, ListedDocument, Named

KNOWN = 0.95
"""The probability that the question is answered where it names the document, or no other is in scope.

Its opening and its headings are then by definition what was asked for; the rest is that the question was meant
otherwise. Where several documents have the same claim it is divided by their number.
"""

FOLLOWED = 0.8
"""The same where the document is the one that the conversation's last answer cited: a new subject may be meant."""

_CANDIDATES = 20


class DocumentsMeant:
    """Finds documents that are meant as a whole in the catalogue, without a search. Safe in several threads.

    Example:
        >>> DocumentsMeant(catalogue).known(question("What is the strategic plan about?"))
        (Named(id='doc_1', version=1, filename='plan.pdf', title='Strategic plan 2022'), 0.95)
    """

    def __init__(self, catalogue: CatalogueRepository) -> None:
        self._catalogue = catalogue

    def known(self, question: Question) -> tuple[Named, float] | None:
        """The document that a question asks about, where no search is needed to know it, and its probability.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
            StoreUnavailable: The database cannot be read.
        """
        wanted = wanted_by(question)
        return None if wanted is None else self._by_name(wanted, question)

    def unclear(self, question: Question, *, limit: int) -> Catalogue | None:
        """The documents that a question about one as a whole may mean, where several have the same claim; else None.

        These are all documents in scope where it names none and the conversation has cited none, or those whose names
        hold all of its words. `Catalogue.newest` has at most `limit` of them. Earlier turns of a chat completion may
        tell the document and have no footnotes to know it by, so nothing is unclear behind them.

        Raises:
            InvalidFilter, StoreUnavailable: As `known`.
        """
        wanted = wanted_by(question)
        if wanted is None:
            return None
        close = [] if wanted.at_hand else self._called(wanted, question)
        if close:
            told_apart = len({(one.filename, one.title) for one in close}) > 1
            named = all(names(wanted, one) for one in close)
            if not (told_apart and named) or any(one.id in question.preferred for one in close):
                return None
            listed = tuple(ListedDocument(one.filename, one.title) for one in close[:limit])
            return Catalogue(searchable=len(listed), waiting=0, newest=listed, collections=())
        described = bool(wanted.words) and not wanted.pointed
        if described or not wanted.explicit or self._at_hand(question) is not None:
            return None
        if question.history and question.conversation_id is None:
            return None
        catalogue = self._catalogue.of(question.scope, limit=limit)
        return catalogue if catalogue.searchable > 1 else None

    def _by_name(self, wanted: Wanted, question: Question) -> tuple[Named, float] | None:
        """The document at hand, the one that the words name, or the one of the last answer, and its probability."""
        if wanted.at_hand:
            return self._at_hand(question)
        close = self._called(wanted, question)
        cited = [one for one in close if one.id in question.preferred]
        if len(close) > 1 and cited:
            return cited[0], FOLLOWED / len(cited)
        if close:
            return close[0], KNOWN / len(close)
        return self._at_hand(question) if wanted.explicit and not wanted.words else None

    def _called(self, wanted: Wanted, question: Question) -> list[Named]:
        """The documents in scope whose names fit best, all as well as the first."""
        return closest(wanted, self._catalogue.named(question.scope, words=searched(wanted), limit=_CANDIDATES))

    def _at_hand(self, question: Question) -> tuple[Named, float] | None:
        """The only document in scope, or the first that the last answer cited."""
        several = self._catalogue.named(question.scope, limit=2)
        if len(several) == 1:
            return several[0], KNOWN
        if not question.preferred:
            return None
        cited = self._catalogue.named(question.scope, ids=question.preferred, limit=_CANDIDATES)
        first = min(cited, key=lambda one: question.preferred.index(one.id), default=None)
        return None if first is None else (first, FOLLOWED / len(cited))


def wanted_by(question: Question) -> Wanted | None:
    """The document that the question asks about: as it was asked, rewritten to stand alone, or as a reply names it."""
    return (
        wanted_overview(question.as_asked)
        or wanted_overview(question.text)
        or named_in_reply(question.as_asked, question.history)
    )
