"""Finds the questions that a document answers, in one background thread, and keeps them with its version.

Nothing is computed until somebody looks at a document, so a collection that is only filled costs nothing. One question
is asked at a time, and waits while answers are being prepared. What a document is about is asked before the next draft
of any other, so that it need not wait for them.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from cachetools import TTLCache

from app.answering.answerer import Answerer
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.db.catalogue import CatalogueRepository
from app.db.contents import ContentRepository
from app.db.suggestions import KeptQuestion, SuggestionRepository
from app.errors import NotFound
from app.ids import new_id
from app.suggestions.checking import MOST_TRIED, DocumentCheck, Suggestion, checked
from app.suggestions.drafting import MOST_CHUNKS, asks_for_whole, proposals
from app.telemetry.logs import logger
from app.types import Principal
from retrieval.types import Chunk, Scope

State = Literal["preparing", "ready", "unavailable", "unasked"]

ENDPOINT = "overview"
"""Names these calls on the ledger."""

_MOST_WAITING = 200
_RETRY_SECONDS = 60.0  # after a budget had no room, or a model failed
_YIELDING_SECONDS = 10.0  # the longest wait of a question while answers are being prepared
_LOOK_SECONDS = 0.1
_STOP_SECONDS = 10.0

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The questions of one document version, and whether they are known.

    `state` "preparing": more are being found, ask again; "unavailable": a budget has no room, or a model failed, and
    they are tried again later; "unasked": nobody has looked at the document, so none were made.
    """

    state: State
    questions: tuple[KeptQuestion, ...] = ()


@dataclass(slots=True)
class _Begun:
    """A version that was asked what it is about, and whose drafts come next; `shown` are the confirmed ones so far."""

    check: DocumentCheck
    scope: Scope  # all that its principal may read
    about: Suggestion | None
    shown: tuple[KeptQuestion, ...] = ()

    def show(self, found: tuple[Suggestion, ...]) -> None:
        """Show the questions found so far: a newcomer need not wait for the last."""
        self.shown = tuple(map(_kept, found))


class Suggester:
    """Suggested questions of all documents. Safe in several threads.

    Example:
        >>> suggester.of("doc_1", version=1, principal=principal).state
        'preparing'
        >>> [one.question for one in suggester.of("doc_1", version=1, principal=principal).questions]
        ['When was the ferry built?']
    """

    def __init__(
        self,
        contents: ContentRepository,
        catalogue: CatalogueRepository,
        kept: SuggestionRepository,
        *,
        answerer: Callable[[], Answerer | None],
    ) -> None:
        """Start no thread yet. `answerer` is the one in use, None while the models are loading."""
        self._contents = contents
        self._catalogue = catalogue
        self._kept = kept
        self._answerer = answerer
        self._waiting: dict[_Key, Principal] = {}  # in their order
        self._failed: TTLCache[_Key, None, float] = TTLCache(_MOST_WAITING, _RETRY_SECONDS)
        self._begun: dict[_Key, _Begun] = {}  # of those that wait, in the same order
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._meter: Meter | None = None

    def of(self, document_id: str, *, version: int, principal: Principal, prepare: bool = True) -> Suggestions:
        """The questions of a live version. The first call has them found, and `principal` pays for that.

        Args:
            document_id: The document.
            version: Its live version.
            principal: Pays for the questions that are found.
            prepare: Whether to have them found; else only what is known is read, and nothing is billed.

        Raises:
            NotFound: There is no such document.
            StoreUnavailable: The database cannot be read.
        """
        kept = self._kept.read(document_id, tenant_id=principal.tenant_id, version=version)
        if kept is not None:
            return Suggestions("ready", kept)
        key = (document_id, version)
        with self._changed:
            if key in self._failed:
                return Suggestions("unavailable")
            if key not in self._waiting:
                # They may have been kept since the read above: then they must not be asked, and paid for, again.
                kept = self._kept.read(document_id, tenant_id=principal.tenant_id, version=version)
                if kept is not None:
                    return Suggestions("ready", kept)
                if not prepare:
                    return Suggestions("unasked")
            if self._answerer() is not None and not self._stopping.is_set() and len(self._waiting) < _MOST_WAITING:
                self._waiting.setdefault(key, principal)
                self._start()
                self._changed.notify_all()
            begun = self._begun.get(key)
            return Suggestions("preparing", () if begun is None else begun.shown)

    def close(self) -> None:
        """Find no more, end the question that is being asked, and wait for the thread. Idempotent."""
        self._stopping.set()
        with self._changed:
            self._waiting.clear()
            self._changed.notify_all()
            if self._meter is not None:
                self._meter.close()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_SECONDS)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="footnote-suggestions", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopping.is_set())
            self._begin_all()
            first = next(iter(self._begun.items()), None)
            if first is not None and not self._stopping.is_set():
                with self._attempt(first[0]):
                    self._ask_drafts(*first)

    def _begin_all(self) -> None:
        """Ask each document that came meanwhile what it is about."""
        with self._changed:
            arrived = [(key, principal) for key, principal in self._waiting.items() if key not in self._begun]
        for key, principal in arrived:
            if self._stopping.is_set():
                return
            answerer = self._answerer()
            if answerer is None:
                self._end(key)
                continue
            with self._attempt(key):
                self._begin(key, principal, answerer)

    @contextmanager
    def _attempt(self, key: _Key) -> Iterator[None]:
        """A step of a version's work; where it fails, the version is left for later."""
        try:
            yield
        except NotFound:
            self._end(key)  # it was deleted meanwhile
        except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
            logger().warning("suggestions.failed", document=key[0], error=type(error).__name__)
            self._end(key, failed=True)

    def _end(self, key: _Key, *, failed: bool = False) -> None:
        with self._changed:
            self._waiting.pop(key, None)  # only now: meanwhile it is not begun again
            self._begun.pop(key, None)
            if failed:
                self._failed[key] = None

    def _begin(self, key: _Key, principal: Principal, answerer: Answerer) -> None:
        """Ask what a version is about, and show it where it is confirmed."""
        asking = Question(
            request_id=new_id("req"),
            endpoint=ENDPOINT,
            principal=principal,
            text="",
            scope=Scope(tenant_id=principal.tenant_id, collection_ids=principal.collections),
        )
        check = DocumentCheck(
            asking, key[0], select=answerer.selection, meter_of=lambda question: self._opened(question, answerer)
        )
        about = check.about(asks_for_whole(self._chunks(key, principal.tenant_id)))
        begun = _Begun(check, asking.scope, about)
        if about is not None and about.confirmed:
            begun.show((about,))
        with self._changed:
            self._begun[key] = begun

    def _ask_drafts(self, key: _Key, begun: _Begun) -> None:
        """Find the other questions of a version, and keep them all."""
        tenant_id = begun.scope.tenant_id
        found = checked(
            proposals(self._chunks(key, tenant_id), limit=MOST_TRIED),
            check=begun.check,
            alone=self._catalogue.of(begun.scope, limit=1).searchable == 1,
            about=begun.about,
            stopping=self._stopping.is_set,
            before_each=self._begin_all,
            on_kept=begun.show,
        )
        if not self._stopping.is_set():  # else what was asked last may have been cut off
            document_id, version = key
            self._kept.keep(document_id, tenant_id=tenant_id, version=version, questions=list(map(_kept, found)))
        self._end(key)

    def _chunks(self, key: _Key, tenant_id: str) -> list[Chunk]:
        document_id, version = key
        stored, _ = self._contents.chunks(document_id, tenant_id=tenant_id, limit=MOST_CHUNKS)
        return [chunk for chunk in stored if chunk.version == version]

    def _opened(self, question: Question, answerer: Answerer) -> Meter:
        """The meter of the next question, once no answer is being prepared or the wait is over."""
        deadline = time.monotonic() + _YIELDING_SECONDS
        while len(answerer.running) and time.monotonic() < deadline and not self._stopping.wait(_LOOK_SECONDS):
            pass
        meter = answerer.meters.of(question)
        with self._changed:
            self._meter = meter
            if self._stopping.is_set():
                meter.close()
        return meter


def _kept(found: Suggestion) -> KeptQuestion:
    return KeptQuestion(found.question, found.quote.start_char, found.quote.end_char, found.answer, found.confirmed)
