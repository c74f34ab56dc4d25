"""One of several processes on a database: the application of the suite beside others, with time that tests let pass."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.db.chunks import ChunkRepository
from app.db.presence import Presence
from app.db.sealed_passwords import SealedPasswords
from app.db.session import Database
from app.documents.adapters.pgvector_store import PgVectorStores
from app.documents.index_ports import VectorStore
from app.models.extractive import NoEngine
from app.server import sharing
from app.server.bootstrap import build
from app.server.model_loading import cancelling
from app.server.periodic import PeriodicThread
from app.server.state import State
from app.settings import Settings
from app.usage.budgets.alert_delivery import AlertDelivery
from retrieval.ports import Vectors
from tests.app.db.samples import generation_of
from tests.app.server.stations import state_with, stations
from tests.retrieval.fakes import HashingEmbedder
from tests.server import ADMIN_KEY, SECRET

HALT = "halt"
"""A process whose folder has no file `go` stands still when it embeds a text or a question with this word."""

_BEAT_SECONDS = 0.05
_DELIVERY_SECONDS = 0.05


class HaltingEmbedder(HashingEmbedder):
    """Notes in the file `halted` that it came to a text with `HALT`, and waits until there is a file `go`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(max_tokens=64)
        self._folder = folder

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        """As its base class, later."""
        if any(HALT in text for text in texts):
            self._halt()
        return super().embed_documents(texts, on_batch=on_batch)

    def embed_query(self, text: str) -> Vectors:
        """As its base class, later."""
        if HALT in text:
            self._halt()
        return super().embed_query(text)

    def _halt(self) -> None:
        (self._folder / "halted").touch()
        while not (self._folder / "go").exists():
            time.sleep(0.01)


def passed(clock: Path) -> float:
    """The seconds that a test let pass so far."""
    return float(clock.read_text())


def vectors_in(database: Database) -> VectorStore:
    """The vectors of the one generation."""
    info = HaltingEmbedder(Path()).info
    return PgVectorStores(database, chunks=ChunkRepository(database)).open(generation_of(database, info), info)


@contextmanager
def application(data_dir: Path) -> Iterator[State]:
    """The state of a process beside others, as the file `member.json` beside its data dir describes it."""
    given = json.loads((data_dir.parent / "member.json").read_text())

    settings = Settings(
        data_dir=data_dir,
        database_url=given["url"],
        shared=True,
        role=given["role"],
        vector_store="pgvector",
        originals=given["originals"],
        admin_key=ADMIN_KEY,
        secret=SECRET,
        _env_file=None,
        **given["settings"],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "BEAT_SECONDS", _BEAT_SECONDS)
        patch.setattr(sharing, "Presence", partial(Presence, monotonic=partial(passed, Path(given["clock"]))))
        with build(settings, with_models=False) as bare:
            engine = NoEngine(revision="0", context_window=4096)
            embedder = HaltingEmbedder(data_dir.parent)
            passwords = SealedPasswords(bare.database, SecretStr(SECRET))
            models = stations(bare, engine, embedder=embedder, index=vectors_in(bare.database), passwords=passwords)
            state = state_with(bare, models=models)
            assert state.history.cancels is not None
            cancels = cancelling(state.serving, state.history.cancels)
            cancels.start()
            usage = state.usage
            alerts = AlertDelivery(usage.alerts, usage.webhooks.post, currency=settings.currency)
            deliveries = PeriodicThread(alerts.work, name="alerts", interval=_DELIVERY_SECONDS, failed="alerts_failed")
            deliveries.start()
            if given["role"] != "api":
                models.worker.start()
            try:
                yield state
            finally:
                models.worker.stop()
                cancels.stop()
                deliveries.stop()
