"""Index generations: the sets of vectors by embedder. Vectors of two embedders are never mixed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from app.db.audit import Record
from app.db.dialect import advisory_lock
from app.db.session import Database
from app.db.tables.documents import chunk_vector, index_generation
from app.errors import Conflict, NotFound, SetupError
from retrieval.types import EmbedderInfo


class GenerationStatus(StrEnum):
    """The states of a generation: being filled, full, searched, kept for a way back, and retired."""

    BUILDING = "building"
    READY = "ready"
    ACTIVE = "active"
    PREVIOUS = "previous"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexGeneration:
    """The vectors of one embedder. Times are Unix seconds.

    `source` is the setting that named the embedder, empty in rows older than that column. `replaced_at` is when another
    generation replaced it, `rejected_at` when an administrator went back from it, `purged_at` when its last vector was
    deleted.
    """

    id: int
    model: str
    revision: str
    dim: int
    source: str
    status: GenerationStatus
    created_at: float
    activated_at: float | None
    replaced_at: float | None
    rejected_at: float | None
    purged_at: float | None

    @property
    def unfinished(self) -> bool:
        """Whether it is being built, or is full and not searched yet."""
        return self.status in (GenerationStatus.BUILDING, GenerationStatus.READY)

    def is_of(self, embedder: EmbedderInfo) -> bool:
        """Whether the vectors are this embedder's; its input limit does not matter."""
        return (self.model, self.revision, self.dim) == (embedder.model, embedder.revision, embedder.dim)


@dataclass(frozen=True, slots=True)
class Standing:
    """The active generation, the one to build, and the configured one that an administrator went back from."""

    active: IndexGeneration
    building: IndexGeneration | None = None
    rejected: IndexGeneration | None = None


class IndexGenerationRepository:
    """The generations of vectors in this database; at most one is active and at most one is being built.

    Example:
        >>> generations = IndexGenerationRepository(database)
        >>> generations.prepare(embedder.info, source="BAAI/bge-m3").active.id
        1
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def list(self) -> tuple[IndexGeneration, ...]:
        """Every generation, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(index_generation).order_by(index_generation.c.id.desc())).all()
        return tuple(_to_generation(row) for row in rows)

    def get(self, generation_id: int) -> IndexGeneration:
        """The generation.

        Raises:
            NotFound: There is none with this number.
        """
        with self._database.read() as connection:
            return _get(connection, generation_id)

    def prepare(self, embedder: EmbedderInfo, *, source: str) -> Standing:
        """Prepare a start with this embedder: activate its generation, or begin to build it beside the active one.

        Without any vectors its generation is active at once. A build for another embedder is given up. A generation
        that an administrator went back from is not built again before a start with the active embedder.
        """
        with self._database.write() as connection:
            active = self._started(connection, embedder, source=source)
            rows = connection.execute(
                sa.select(index_generation)
                .where(index_generation.c.status.not_in((GenerationStatus.ACTIVE, GenerationStatus.RETIRED)))
                .order_by(index_generation.c.id.desc())
            ).all()
            kept = [_to_generation(row) for row in rows]
            if active.is_of(embedder):
                if active.rejected_at is not None:  # a restart interrupted the way back
                    return Standing(active, building=next((found for found in kept if found.unfinished), None))
                _give_up(connection, [found for found in kept if found.unfinished])
                _set(connection, index_generation.c.rejected_at.is_not(None), rejected_at=None)
                _set(connection, index_generation.c.id == active.id, source=source)
                return Standing(_get(connection, active.id))
            known = next((found for found in kept if found.is_of(embedder)), None)
            if known is not None and known.rejected_at is not None:
                return Standing(active, rejected=known)
            _give_up(connection, [found for found in kept if found.unfinished and found != known])
            if known is None:
                known = self._create(connection, embedder, source=source, status=GenerationStatus.BUILDING)
            _set(connection, index_generation.c.id == known.id, status=GenerationStatus.BUILDING, source=source)
            return Standing(active, building=_get(connection, known.id))

    def join(self, embedder: EmbedderInfo, *, source: str) -> Standing:
        """As `prepare`, for a process beside others, which changes nothing that those have begun with.

        Raises:
            SetupError: The others use another embedder, or it is being changed.
        """
        with self._database.write() as connection:
            advisory_lock(connection, "generations")  # two first starts make one generation
            active = _active(connection) or self._create(
                connection, embedder, source=source, status=GenerationStatus.ACTIVE
            )
            changing = connection.execute(sa.select(index_generation.c.id).where(_unfinished())).first() is not None
        if changing or not active.is_of(embedder):
            raise SetupError(
                f"The processes of this database search with the embedder {active.model} (revision {active.revision}). "
                "Set it here as well; to change it, stop them all and start one without FOOTNOTE_SHARED until the new "
                "vectors are in use."
            )
        return Standing(active)

    def ready(self, generation_id: int) -> None:
        """Mark a generation as ready: every visible chunk has its vector; the swap adds those that come later."""
        with self._database.write() as connection:
            _set(connection, index_generation.c.id == generation_id, status=GenerationStatus.READY)

    def activate(self, generation_id: int) -> IndexGeneration:
        """Make a generation the active one; the one before is kept as previous.

        Raises:
            Conflict: It is not being built any more.
        """
        now = self._clock()
        with self._database.write() as connection:
            chosen, active = _get(connection, generation_id), _active(connection)
            if not chosen.unfinished:
                raise Conflict("This generation is not being built.")
            assert active is not None, "a generation is built beside the active one"
            _set(connection, index_generation.c.id == active.id, status=GenerationStatus.PREVIOUS, replaced_at=now)
            this = index_generation.c.id == generation_id
            _set(connection, this, status=GenerationStatus.ACTIVE, activated_at=now, rejected_at=None)
            return _get(connection, generation_id)

    def before(self, generation_id: int) -> tuple[IndexGeneration, ...]:
        """The generations that were active before and are still kept, latest first.

        Raises:
            NotFound: There is no such generation.
            Conflict: It is not the active one, or no earlier one is kept.
        """
        with self._database.read() as connection:
            if _get(connection, generation_id).status is not GenerationStatus.ACTIVE:
                raise Conflict("This generation is not the one in use.")
            rows = connection.execute(
                sa.select(index_generation)
                .where(index_generation.c.status == GenerationStatus.PREVIOUS)
                .order_by(index_generation.c.replaced_at.desc(), index_generation.c.id.desc())
            ).all()
        if not rows:
            raise Conflict("No generation from before this one is kept.")
        return tuple(_to_generation(row) for row in rows)

    def go_back(self, generation_id: int, *, record: Record | None = None) -> IndexGeneration:
        """Reject the active generation and build a previous one again, which lacks the chunks added since.

        `record` writes the audit entry in the same transaction.

        Raises:
            Conflict: It is not kept any more, or another is being built.
        """
        with self._database.write() as connection:
            if _get(connection, generation_id).status is not GenerationStatus.PREVIOUS:
                raise Conflict("This generation is not kept any more.")
            if connection.execute(sa.select(index_generation.c.id).where(_unfinished())).first() is not None:
                raise Conflict("Another generation is being built; wait for it, or set its embedder back.")
            in_use = index_generation.c.status == GenerationStatus.ACTIVE
            _set(connection, in_use, rejected_at=self._clock())
            _set(connection, index_generation.c.id == generation_id, status=GenerationStatus.BUILDING)
            target = _get(connection, generation_id)
            if record is not None:
                record(connection, str(generation_id), {"model": target.model, "revision": target.revision})
            return target

    def retire(self, generation_id: int, *, record: Record | None = None) -> None:
        """Retire a generation that is not active; `VectorRepository.purge` deletes its vectors afterwards.

        `record` writes the audit entry in the same transaction.
        """
        unused = index_generation.c.status != GenerationStatus.ACTIVE
        with self._database.write() as connection:
            _set(connection, sa.and_(index_generation.c.id == generation_id, unused), status=GenerationStatus.RETIRED)
            if record is not None:
                retired = _get(connection, generation_id)
                record(connection, str(generation_id), {"model": retired.model, "revision": retired.revision})

    def unpurged(self) -> tuple[IndexGeneration, ...]:
        """The retired generations that may still have vectors."""
        return tuple(
            found for found in self.list() if found.status is GenerationStatus.RETIRED and found.purged_at is None
        )

    def purged(self, generation_id: int) -> None:
        """Record that a retired generation has no vectors any more."""
        with self._database.write() as connection:
            _set(connection, index_generation.c.id == generation_id, purged_at=self._clock())

    def _started(self, connection: sa.Connection, embedder: EmbedderInfo, *, source: str) -> IndexGeneration:
        """The active generation; a new one if there is none, or if it has another embedder and no vectors."""
        active = _active(connection)
        if active is not None:
            if active.is_of(embedder) or connection.execute(sa.select(chunk_vector.c.key).limit(1)).first() is not None:
                return active
            _set(connection, index_generation.c.status != GenerationStatus.RETIRED, status=GenerationStatus.RETIRED)
        return self._create(connection, embedder, source=source, status=GenerationStatus.ACTIVE)

    def _create(
        self, connection: sa.Connection, embedder: EmbedderInfo, *, source: str, status: GenerationStatus
    ) -> IndexGeneration:
        now = self._clock()
        created = connection.execute(
            sa.insert(index_generation)
            .values(
                model=embedder.model,
                revision=embedder.revision,
                dim=embedder.dim,
                metric="cosine",
                status=status,
                created_at=now,
                source=source,
                activated_at=now if status is GenerationStatus.ACTIVE else None,
            )
            .returning(index_generation.c.id)
        ).scalar_one()
        return _get(connection, created)


def _give_up(connection: sa.Connection, unfinished: Sequence[IndexGeneration]) -> None:
    """Stop building generations: one that was active before becomes previous again, the others are retired."""
    for found in unfinished:
        status = GenerationStatus.RETIRED if found.replaced_at is None else GenerationStatus.PREVIOUS
        _set(connection, index_generation.c.id == found.id, status=status)


def _unfinished() -> sa.ColumnElement[bool]:
    return index_generation.c.status.in_((GenerationStatus.BUILDING, GenerationStatus.READY))


def _active(connection: sa.Connection) -> IndexGeneration | None:
    query = sa.select(index_generation).where(index_generation.c.status == GenerationStatus.ACTIVE)
    row = connection.execute(query.with_for_update()).one_or_none()
    return None if row is None else _to_generation(row)


def _get(connection: sa.Connection, generation_id: int) -> IndexGeneration:
    query = sa.select(index_generation).where(index_generation.c.id == generation_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such generation.")
    return _to_generation(row)


def _set(connection: sa.Connection, which: sa.ColumnElement[bool], **values: object) -> None:
    connection.execute(sa.update(index_generation).where(which).values(**values))


def _to_generation(row: sa.Row[Any]) -> IndexGeneration:
    return IndexGeneration(
        id=row.id,
        model=row.model,
        revision=row.revision,
        dim=row.dim,
        source=row.source,
        status=GenerationStatus(row.status),
        created_at=row.created_at,
        activated_at=row.activated_at,
        replaced_at=row.replaced_at,
        rejected_at=row.rejected_at,
        purged_at=row.purged_at,
    )
