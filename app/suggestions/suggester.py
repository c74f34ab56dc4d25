"""Finds the questions that a document answers, in one background thread, and keeps them with its version.

Nothing is computed until somebody looks at a document, so a collection that is only filled costs nothing. One document
is worked on at a time, and each of its questions waits while answers are being prepared.
"""

import threading
import time
from collections.abc import Callable
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
from app.suggestions.checking import MOST_TRIED, Suggestion, checked
from app.suggestions.drafting import MOST_CHUNKS, asks_for_whole, proposals
from app.telemetry.logs import logger
from app.types import Principal
from retrieval.types import Scope

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
        self._so_far: tuple[_Key, tuple[KeptQuestion, ...]] | None = None  # of the one that is worked on
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
            if not prepare and key not in self._waiting:
                return Suggestions("unasked")
            if self._answerer() is not None and not self._stopping.is_set() and len(self._waiting) < _MOST_WAITING:
                self._waiting.setdefault(key, principal)
                self._begin()
                self._changed.notify_all()
            if self._so_far is not None and self._so_far[0] == key:
                return Suggestions("preparing", self._so_far[1])
        return Suggestions("preparing")

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

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="footnote-suggestions", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopping.is_set())
                if self._stopping.is_set():
                    return
                key, principal = next(iter(self._waiting.items()))
            failed = not self._found(*key, principal)
            with self._changed:
                self._so_far = None
                self._waiting.pop(key, None)  # only now: meanwhile it is not begun again
                if failed:
                    self._failed[key] = None

    def _found(self, document_id: str, version: int, principal: Principal) -> bool:
        """Find and keep the questions of a version; whether that need not be tried again."""
        answerer = self._answerer()
        if answerer is None:
            return True
        asking = Question(
            request_id=new_id("req"),
            endpoint=ENDPOINT,
            principal=principal,
            text="",
            scope=Scope(tenant_id=principal.tenant_id, collection_ids=principal.collections),
        )
        try:
            stored, _ = self._contents.chunks(document_id, tenant_id=principal.tenant_id, limit=MOST_CHUNKS)
            chunks = [chunk for chunk in stored if chunk.version == version]
            found = checked(
                proposals(chunks, limit=MOST_TRIED),
                asking=asking,
                document_id=document_id,
                alone=self._catalogue.of(asking.scope, limit=1).searchable == 1,
                select=answerer.selection,
                meter_of=lambda question: self._opened(question, answerer),
                whole=asks_for_whole(chunks),
                stopping=self._stopping.is_set,
                on_kept=lambda kept: self._show((document_id, version), kept),
            )
            if self._stopping.is_set():
                return True  # what was asked last may have been cut off
            self._kept.keep(
                document_id, tenant_id=principal.tenant_id, version=version, questions=list(map(_kept, found))
            )
        except NotFound:
            return True  # it was deleted meanwhile
        except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
            logger().warning("suggestions.failed", document=document_id, error=type(error).__name__)
            return False
        return True

    def _show(self, key: _Key, found: tuple[Suggestion, ...]) -> None:
        """Show the questions found so far: a newcomer need not wait for the last."""
        with self._changed:
            self._so_far = (key, tuple(map(_kept, found)))

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
