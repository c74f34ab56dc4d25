"""Follows the passages that kept answers cite into new versions of their documents, in the background.

No model is called: texts are compared (`ingestion.revisions`). What is to be done is in the database, so a process that
dies leaves it to the next one, and doing it twice stores the same.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from app.db.cited_passages import CitedPassageRepository, CitedPlace, LiveText, PassagePlace
from app.telemetry.logs import logger
from ingestion.revisions import FoundPassage, PassageState, Revision
from ingestion.types import PageRange
from retrieval.types import Span

_SWEEP_SECONDS = 600.0
_TURN_SECONDS, _PAUSE_SECONDS = 0.001, 0.0005  # so that requests wait for this thread less than its turn of 5 ms


class PassageFollower:
    """Looks for cited passages in the live versions of their documents.

    Example:
        >>> follower = PassageFollower(CitedPassageRepository(database))
        >>> follower.work()
    """

    def __init__(self, passages: CitedPassageRepository, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds and never goes back."""
        self._passages = passages
        self._clock = clock
        self._swept: float | None = None

    def work(self, *, stopping: Callable[[], bool] = lambda: False) -> int:
        """Look for all passages that are to be looked for; returns how many documents are done.

        A document whose passages cannot be followed is logged and left, and does not keep the others waiting.

        Raises:
            StoreUnavailable: The database cannot be read; what is stored stays.
        """
        if self._swept is None or self._clock() - self._swept >= _SWEEP_SECONDS:
            self._passages.sweep()
            self._swept = self._clock()
        done = 0
        for document_id in self._passages.superseded():
            if stopping():
                break
            try:
                done += self._follow(document_id)
            except Exception as error:  # noqa: BLE001 - one document must not stop the others; it is logged
                logger().error(
                    "passages.not_followed", document=document_id, error=type(error).__name__, exc_info=error
                )
        return done

    def _follow(self, document_id: str) -> bool:
        """Store what became of the passages of a document; False where another version came meanwhile."""
        live = self._passages.live(document_id)
        if live is None:
            return self._passages.settled(document_id)
        started = time.perf_counter()
        settled = self._passages.place(live, followed(live, self._passages.cited_texts))
        logger().info(
            "passages.followed",
            document=document_id,
            version=live.version,
            passages=len(live.places),
            seconds=round(time.perf_counter() - started, 3),
        )
        return settled


def followed(
    live: LiveText, cited_texts: Callable[[LiveText, set[CitedPlace]], Mapping[CitedPlace, str]]
) -> dict[CitedPlace, PassagePlace]:
    """What became of each passage in the live version.

    The passage is looked for beside the text of the version that is cited. Where that is deleted, its place in a later
    one is followed from there; where that is not known either, the words that `cited_texts` finds in kept answers are
    looked for alone.
    """
    by_origin: dict[int | None, list[tuple[CitedPlace, str, int]]] = defaultdict(list)
    altered: set[CitedPlace] = set()
    lost: set[CitedPlace] = set()
    for place, known in live.places.items():
        _, cited, start, end = place
        if cited in live.texts:
            by_origin[cited].append((place, live.texts[cited][start:end], start))
        elif (
            known is not None
            and known.version is not None
            and known.version in live.texts
            and known.start_char is not None
        ):
            words = live.texts[known.version][known.start_char : known.end_char]
            by_origin[known.version].append((place, words, known.start_char))
            altered |= {place} if known.state is PassageState.ALTERED else set()
        else:
            lost.add(place)
    if lost:
        words_of = cited_texts(live, lost)
        by_origin[None] = [(place, words_of.get(place, ""), place[2]) for place in sorted(lost)]
    found: dict[CitedPlace, PassagePlace] = {}
    began = time.perf_counter()
    for origin, passages in by_origin.items():
        revision = Revision(live.text, old=None if origin is None else live.texts[origin])
        for place, words, at in passages:
            one = revision.find(words, start_char=at)
            if time.perf_counter() - began > _TURN_SECONDS:
                time.sleep(_PAUSE_SECONDS)
                began = time.perf_counter()
            found[place] = _placed(live, place, one, altered=place in altered)
    return found


def _placed(live: LiveText, place: CitedPlace, found: FoundPassage, *, altered: bool) -> PassagePlace:
    """The place for a passage that was found; one that was altered before stays so."""
    if found.span is None:
        return PassagePlace(version=live.version, state=PassageState.GONE)
    state = PassageState.ALTERED if altered else found.state
    if state is not PassageState.ALTERED:
        same = (found.span.start_char, found.span.end_char) == place[2:]
        state = PassageState.CURRENT if same else PassageState.MOVED
    pages = [page.number for page in live.pages if _overlap(page, found.span)]
    return PassagePlace(
        version=live.version,
        state=state,
        start_char=found.span.start_char,
        end_char=found.span.end_char,
        page_start=pages[0] if pages else None,
        page_end=pages[-1] if pages else None,
        text=live.text[found.span.start_char : found.span.end_char] if state is PassageState.ALTERED else None,
    )


def _overlap(page: PageRange, span: Span) -> bool:
    return page.start_char < span.end_char and span.start_char < page.end_char
