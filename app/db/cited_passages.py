"""The passages that kept answers cite: one row each, with its place in the live version of its document.

A passage is looked for again when its document gets another version. The swap notes that in its own transaction, in
`superseded_version`, so that no crash loses it; deleting a document deletes its passages (docs/adr/0119).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.session import Database
from app.db.tables.answers import cited_passage, superseded_version
from app.db.tables.documents import conversation_turn, document, document_version
from app.db.tables.ledger import answer_citation
from ingestion.revisions import PassageState
from ingestion.types import PageRange

CitedPlace: TypeAlias = tuple[str, int, int, int]
"""Document id, version, and the first character of a passage and the one past its last."""

_IDS_A_QUERY = 500
_PLACES_A_QUERY = 100
_WRITTEN = 500  # passages in one transaction, for which other writers wait
_TURNS_A_QUERY = 200
_NEW, _SUPERSEDED = insert_or_ignore(cited_passage), insert_or_ignore(superseded_version)
_PENDING = sa.and_(
    document.c.id == cited_passage.c.document_id,
    document.c.live_version.is_not(None),
    document.c.live_version != cited_passage.c.place_version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagePlace:
    """What became of a cited passage in a version of its document.

    `start_char` and `end_char` bound it in that version's canonical text, pages count from 1. All are None where it is
    gone, pages also where the document has none; `version` is None where the document is deleted. `text` is the new
    wording of an altered passage. A null state is of a passage that is not looked for in that version yet.
    """

    version: int | None
    state: PassageState | None
    start_char: int | None = None
    end_char: int | None = None
    page_start: int | None = None
    page_end: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveText:
    """The live version of a document with passages to look for. `places` are those known so far, None before any.

    `texts` are the canonical texts of earlier versions that are still known, by version.
    """

    tenant_id: str
    document_id: str
    version: int
    text: str
    pages: tuple[PageRange, ...]
    texts: Mapping[int, str]
    places: Mapping[CitedPlace, PassagePlace | None]


def note_cited(connection: sa.Connection, citations: Iterable[Mapping[str, Any]]) -> None:
    """Note the passages that a turn cites; those of a version that is no longer live are to be looked for."""
    places = sorted({place for citation in citations if (place := place_of(citation)) is not None})
    ids = {place[0] for place in places}
    if not ids:
        return
    known = sa.select(document.c.id, document.c.live_version).where(document.c.id.in_(ids))
    live = {row.id: row.live_version for row in connection.execute(known)}
    rows = [{**_key(place), "place_version": place[1]} for place in places if place[0] in live]
    if rows:
        connection.execute(_NEW.on(connection), rows)
    earlier = sorted({place[:2] for place in places if place[0] in live and live[place[0]] != place[1]})
    if earlier:
        connection.execute(_SUPERSEDED.on(connection), [{"document_id": one[0], "version": one[1]} for one in earlier])


def note_superseded(connection: sa.Connection, document_ids: Collection[str]) -> None:
    """Note the live versions of documents, about to be replaced, whose passages are cited; with their texts.

    The documents are locked. Texts of versions that stay are found with them, and not copied.
    """
    cited = sa.select(cited_passage.c.document_id).where(cited_passage.c.document_id.in_(document_ids)).distinct()
    ids = sorted(connection.execute(cited).scalars())
    if not ids:
        return
    live = sa.select(document.c.id, document.c.live_version).where(
        document.c.id.in_(ids), document.c.live_version < document.c.version
    )
    rows = [{"document_id": row.id, "version": row.live_version} for row in connection.execute(live)]
    if rows:
        connection.execute(_SUPERSEDED.on(connection), rows)


def keep_text(connection: sa.Connection, document_id: str, *, below: int) -> None:
    """Keep the texts of versions below a number that are about to be deleted, where passages are to be looked for."""
    its_text = (
        sa.select(document_version.c.text)
        .where(
            document_version.c.document_id == superseded_version.c.document_id,
            document_version.c.version == superseded_version.c.version,
        )
        .scalar_subquery()
    )
    connection.execute(
        sa.update(superseded_version)
        .where(
            superseded_version.c.document_id == document_id,
            superseded_version.c.version < below,
            superseded_version.c.text.is_(None),
        )
        .values(text=its_text)
    )


def forget_passages(connection: sa.Connection, document_id: str) -> None:
    """Delete the passages of a document that is deleted: all of them are gone."""
    for table in (cited_passage, superseded_version):
        connection.execute(sa.delete(table).where(table.c.document_id == document_id))


def place_of(citation: Mapping[str, Any]) -> CitedPlace | None:
    """The passage of a stored citation; None where an early answer did not record it."""
    document_id, version = citation.get("document_id"), citation.get("version")
    start, end = citation.get("start_char"), citation.get("end_char")
    if isinstance(document_id, str) and isinstance(version, int) and isinstance(start, int) and isinstance(end, int):
        return document_id, version, start, end
    return None


class CitedPassageRepository:
    """Cited passages of all tenants.

    Example:
        >>> repository.superseded()
        ('doc_1',)
        >>> live = repository.live("doc_1")
        >>> repository.place(live, {("doc_1", 1, 0, 30): PassagePlace(version=2, state=PassageState.GONE)})
        True
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def sweep(self) -> int:
        """Note again what a swap and an answer that were committed at the same moment both missed; returns how much.

        Raises:
            StoreUnavailable, StorageFull: Nothing was noted.
        """
        missed = (
            sa.select(cited_passage.c.document_id, cited_passage.c.place_version).join(document, _PENDING).distinct()
        )
        with self._database.read() as connection:
            rows = connection.execute(missed).all()
        if rows:
            with self._database.write_shortly() as connection:
                values = [{"document_id": row.document_id, "version": row.place_version} for row in rows]
                connection.execute(_SUPERSEDED.on(connection), values)
        return len(rows)

    def superseded(self) -> tuple[str, ...]:
        """The ids of documents with passages to look for, a few hundred at most."""
        query = sa.select(superseded_version.c.document_id).distinct().limit(_IDS_A_QUERY)
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())

    def live(self, document_id: str) -> LiveText | None:
        """The live version of a document with its passages that are to be looked for; None where there are none."""
        pending = sa.select(cited_passage).join(document, _PENDING).where(cited_passage.c.document_id == document_id)
        newest = (
            sa.select(
                document.c.tenant_id, document_version.c.version, document_version.c.text, document_version.c.pages
            )
            .join(
                document_version,
                sa.and_(
                    document_version.c.document_id == document.c.id,
                    document_version.c.version == document.c.live_version,
                ),
            )
            .where(document.c.id == document_id)
        )
        with self._database.read() as connection:
            rows = connection.execute(pending).all()
            live = connection.execute(newest).one_or_none()
            if not rows or live is None:
                return None
            wanted = {row.place_version for row in rows} | {row.version for row in rows}
            texts: dict[int, str] = {}
            for table in (superseded_version, document_version):
                mine = table.c.document_id == document_id, table.c.version.in_(wanted), table.c.text.is_not(None)
                known = sa.select(table.c.version, table.c.text).where(*mine)
                texts |= {row.version: row.text for row in connection.execute(known)}
        return LiveText(
            tenant_id=live.tenant_id,
            document_id=document_id,
            version=live.version,
            text=live.text,
            pages=tuple(PageRange(*page) for page in live.pages),
            texts=texts,
            places={_place(row): _known(row) for row in rows},
        )

    def cited_texts(self, live: LiveText, wanted: Collection[CitedPlace]) -> dict[CitedPlace, str]:
        """The words of passages as turns quote them, for those of which a turn is left."""
        found: dict[CitedPlace, str] = {}
        citing = sa.select(answer_citation.c.request_id).where(
            answer_citation.c.tenant_id == live.tenant_id, answer_citation.c.document_id == live.document_id
        )
        after = ""
        while len(found) < len(wanted):
            with self._database.read() as connection:
                turns = connection.execute(
                    sa.select(conversation_turn.c.request_id, conversation_turn.c.citations)
                    .where(conversation_turn.c.request_id.in_(citing), conversation_turn.c.request_id > after)
                    .order_by(conversation_turn.c.request_id)
                    .limit(_TURNS_A_QUERY)
                ).all()
            for turn in turns:
                for citation in turn.citations:
                    place = place_of(citation)
                    if place is not None and place in wanted and isinstance(citation.get("cited_text"), str):
                        found[place] = citation["cited_text"]
            if len(turns) < _TURNS_A_QUERY:
                break
            after = turns[-1].request_id
        return found

    def place(self, live: LiveText, places: Mapping[CitedPlace, PassagePlace]) -> bool:
        """Store the places found in a live version; False where a part is left, as another version is live meanwhile.

        A part is one transaction; the note of the swap goes with the last one.

        Raises:
            StoreUnavailable, StorageFull: The parts before are stored, and the note is left.
        """
        update = sa.update(cited_passage).where(
            *(cited_passage.c[name] == sa.bindparam(f"its_{name}") for name in _KEY),
            cited_passage.c.place_version < sa.bindparam("its_live"),
        )
        rows = [
            {
                **{f"its_{name}": value for name, value in _key(place).items()},
                "its_live": live.version,
                "place_version": live.version,
                "state": found.state,
                "place_start": found.start_char,
                "place_end": found.end_char,
                "page_start": found.page_start,
                "page_end": found.page_end,
                "text": found.text,
            }
            for place, found in sorted(places.items(), key=lambda one: one[0])
        ]
        for start in range(0, len(rows), _WRITTEN):
            with self._database.write() as connection:
                connection.execute(update, rows[start : start + _WRITTEN])
        return self.settled(live.document_id, below=live.version)

    def settled(self, document_id: str, *, below: int | None = None) -> bool:
        """Delete the notes of versions below a number once no passage is left to look for; whether none was."""
        left = (
            sa.select(cited_passage.c.version)
            .join(document, _PENDING)
            .where(cited_passage.c.document_id == document_id)
        )
        mine = superseded_version.c.document_id == document_id
        with self._database.write_shortly() as connection:
            if connection.execute(left.limit(1)).first() is not None:
                return False
            older = mine if below is None else sa.and_(mine, superseded_version.c.version < below)
            connection.execute(sa.delete(superseded_version).where(older))
            return True

    def of_citations(
        self, citations: Sequence[Mapping[str, Any]], *, tenant_id: str
    ) -> Mapping[CitedPlace, PassagePlace]:
        """What became of cited passages in the live versions of their documents.

        A passage that stays where it was cited, in the version that is live still, is `current`.
        """
        places = {place for citation in citations if (place := place_of(citation)) is not None}
        ids = sorted({place[0] for place in places})
        live: dict[str, int] = {}
        rows: dict[CitedPlace, PassagePlace | None] = {}
        with self._database.read() as connection:
            for start in range(0, len(ids), _IDS_A_QUERY):
                block = ids[start : start + _IDS_A_QUERY]
                kept = document.c.tenant_id == tenant_id, document.c.status != "deleting", document.c.id.in_(block)
                known = sa.select(document.c.id, document.c.live_version).where(*kept)
                live |= {row.id: row.live_version for row in connection.execute(known)}
            later = sorted(place for place in places if live.get(place[0], place[1]) != place[1])
            for first in range(0, len(later), _PLACES_A_QUERY):
                theirs = [
                    sa.and_(*(cited_passage.c[name] == one for name, one in _key(place).items()))
                    for place in later[first : first + _PLACES_A_QUERY]
                ]
                query = sa.select(cited_passage).where(sa.or_(*theirs))
                rows |= {_place(row): _known(row) for row in connection.execute(query)}
        return {place: _now(place, live.get(place[0]), rows.get(place)) for place in places}


_KEY = ("document_id", "version", "start_char", "end_char")


def _now(place: CitedPlace, live: int | None, known: PassagePlace | None) -> PassagePlace:
    """What became of a passage in the live version of its document, which is None where it is deleted."""
    if live is None:
        return PassagePlace(version=None, state=PassageState.GONE)
    if live == place[1]:
        return PassagePlace(version=live, state=PassageState.CURRENT, start_char=place[2], end_char=place[3])
    return known if known is not None and known.version == live else PassagePlace(version=live, state=None)


def _key(place: CitedPlace) -> dict[str, object]:
    return dict(zip(_KEY, place, strict=True))


def _place(row: sa.Row[Any]) -> CitedPlace:
    return row.document_id, row.version, row.start_char, row.end_char


def _known(row: sa.Row[Any]) -> PassagePlace | None:
    if row.state is None:
        return None
    return PassagePlace(
        version=row.place_version,
        state=PassageState(row.state),
        start_char=row.place_start,
        end_char=row.place_end,
        page_start=row.page_start,
        page_end=row.page_end,
        text=row.text,
    )
