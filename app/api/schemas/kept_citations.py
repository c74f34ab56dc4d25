"""Footnotes of kept answers as they are now: the passage may have moved, been altered, or be gone since."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import Field

from app.api.schemas.shape import ResponseBody
from app.db.cited_passages import CitedPlace, PassagePlace, place_of
from ingestion.revisions import PassageState
from ingestion.wording import RunKind, changes

Places: TypeAlias = Mapping[CitedPlace, PassagePlace]
"""What became of cited passages in the live versions of their documents."""

KEPT_CITATIONS = (
    "Footnotes, with their fields in the answer, and what became of their passages since. `state` is `current`; "
    "`moved`: it stands unchanged at another place; `altered`: its words differ; `gone`: it is in the document no "
    "more, or the document is deleted; null while a new version is being looked through. `current_version` is the "
    "version that is searched now, null for a deleted document. `current_start_char`, `current_end_char`, "
    "`current_page_start` and `current_page_end` are the passage's place in it, null where it has none. For an "
    "altered passage `current_text` is its new wording, and `changes` are the runs of both wordings: `kind` "
    "(`equal`, `removed`, `added`) and `text`. `verified` is false unless the passage is current or has moved."
)


class WordRunBody(ResponseBody):
    """Words that both wordings have, or one of them."""

    kind: RunKind = Field(description="`equal`, `removed` or `added`.")
    text: str = Field(description="The words, with the white space behind them.", examples=["60 "])


def kept_citation(citation: Mapping[str, Any], places: Places) -> dict[str, Any]:
    """A stored citation with what became of its passage. One of an early answer without a place has a null state."""
    place = place_of(citation)
    found = None if place is None else places.get(place)
    state = None if found is None else _state(citation, found)
    altered = found is not None and state is PassageState.ALTERED
    runs = changes(str(citation.get("cited_text", "")), found.text or "") if altered and found is not None else ()
    return {
        **citation,
        "verified": bool(citation.get("verified")) and holds(citation, places),
        "state": None if state is None else state.value,
        "current_version": None if found is None else found.version,
        "current_start_char": None if found is None else found.start_char,
        "current_end_char": None if found is None else found.end_char,
        **_pages(citation, found),
        "current_text": found.text if altered and found is not None else None,
        "changes": [{"kind": run.kind, "text": run.text} for run in runs],
    }


def holds(citation: Mapping[str, Any], places: Places) -> bool:
    """Whether the document still says what was cited, as far as is known; of an early answer without a place it is."""
    place = place_of(citation)
    if place is None or place not in places:
        return True
    return _state(citation, places[place]) in {PassageState.CURRENT, PassageState.MOVED}


def _state(citation: Mapping[str, Any], found: PassagePlace) -> PassageState | None:
    """The state for a reader: a wording that was changed back is none, and equal characters on another page moved."""
    same_words = str(found.text).split() == str(citation.get("cited_text")).split()
    if found.state is PassageState.ALTERED and same_words:
        return PassageState.MOVED
    elsewhere = found.version != citation.get("version") and found.page_start != citation.get("page_start")
    return PassageState.MOVED if found.state is PassageState.CURRENT and elsewhere else found.state


def _pages(citation: Mapping[str, Any], found: PassagePlace | None) -> dict[str, Any]:
    """The pages of a passage now; in the version that was cited they are those of the citation."""
    same = found is not None and found.version == citation.get("version")
    return {
        "current_page_start": citation.get("page_start") if same else found and found.page_start,
        "current_page_end": citation.get("page_end") if same else found and found.page_end,
    }
