"""Index generations: which embedder the stored vectors are from. Two embedders never mix."""

import time
from collections.abc import Callable

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables import chunk_vector, index_generation
from app.errors import SetupError
from retrieval.types import EmbedderInfo


class GenerationRepository:
    """The generations of vectors in this database; at most one is active."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def ensure(self, embedder: EmbedderInfo) -> int:
        """The id of the generation this embedder writes and searches; a new one while there are no vectors.

        Raises:
            SetupError: There are vectors of another embedder.
        """
        active = sa.select(index_generation).where(index_generation.c.status == "active")
        with self._database.write() as connection:
            current = connection.execute(active.with_for_update()).one_or_none()
            if current is not None:
                if (current.model, current.revision, current.dim) == (embedder.model, embedder.revision, embedder.dim):
                    return int(current.id)
                if connection.execute(sa.select(chunk_vector.c.key).limit(1)).scalar() is not None:
                    raise SetupError(
                        f"The index was built with the embedder {current.model} (revision {current.revision}, "
                        f"{current.dim} dimensions); the settings ask for {embedder.model} (revision "
                        f"{embedder.revision}, {embedder.dim} dimensions). Set the old embedder again, or delete the "
                        "documents under it before changing the embedder."
                    )
                connection.execute(
                    sa.update(index_generation).where(index_generation.c.id == current.id).values(status="retired")
                )
            created = connection.execute(
                sa.insert(index_generation)
                .values(
                    model=embedder.model,
                    revision=embedder.revision,
                    dim=embedder.dim,
                    metric="cosine",
                    status="active",
                    created_at=self._clock(),
                )
                .returning(index_generation.c.id)
            ).scalar_one()
            return int(created)
