"""app.server.sharing: what a process needs for others beside it, what it does about them, and which role it has."""

import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.access.startup_keys import ensure_first_key
from app.api.application import create_app
from app.db.index_generations import IndexGenerationRepository
from app.db.keys import KeyRepository
from app.db.migration import downgrade, upgrade
from app.db.presence import leads, living, require_alone
from app.db.session import Database
from app.db.tables.ledger import process
from app.errors import SetupError
from app.models.extractive import NoEngine
from app.server.bootstrap import build
from app.server.sharing import REQUIREMENTS, of_worker, require_shareable
from app.settings import Settings, load_settings
from app.types import ApiKey
from retrieval.types import EmbedderInfo
from tests.app.server.stations import state_with, stations
from tests.postgres import empty_postgres
from tests.server import ADMIN_KEY, SECRET

OTHER = EmbedderInfo(model="other", revision="r1", dim=4, max_tokens=64)
TINY = EmbedderInfo(model="tiny", revision="r1", dim=4, max_tokens=64)


@pytest.fixture
def url() -> Iterator[str]:
    """A PostgreSQL database with the newest schema."""
    with empty_postgres() as empty:
        database = Database.open(empty)
        upgrade(database)
        database.close()
        yield empty


def beside(folder: Path, url: str, **values: Any) -> Settings:
    """The settings of a process beside others."""
    originals = folder.parent / "originals"
    originals.mkdir(exist_ok=True)
    return Settings(
        data_dir=folder,
        database_url=url,
        shared=True,
        vector_store="pgvector",
        originals=str(originals),
        admin_key=ADMIN_KEY,
        secret=SECRET,
        _env_file=None,
        **values,
    )


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, shared=True, lexical="tantivy", _env_file=None)

    with pytest.raises(SetupError) as refused:
        require_shareable(settings)

    assert str(refused.value).count(". ") == 0, "one sentence"
    for _, need in REQUIREMENTS:
        assert need in str(refused.value)
    with pytest.raises(SetupError), build(settings, with_models=False):
        pytest.fail("it started")


def test_who_has_all_of_it_may_start(tmp_path: Path) -> None:
    require_shareable(beside(tmp_path, "postgresql://h/d"))


def test_one_that_is_alone_needs_nothing_of_it(tmp_path: Path) -> None:
    require_shareable(Settings(data_dir=tmp_path, lexical="tantivy", _env_file=None))


@pytest.mark.parametrize("role", ["api", "worker"])
def test_a_role_is_one_beside_others(role: str) -> None:
    with pytest.raises(SetupError, match=f"FOOTNOTE_ROLE={role} needs FOOTNOTE_SHARED=true"):
        load_settings(role=role)


def test_two_serve_one_database_and_one_that_is_alone_is_refused_meanwhile(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Settings(data_dir=tmp_path / "c", database_url=url, _env_file=None)
    with build(beside(tmp_path / "a", url), with_models=False) as first:
        with build(beside(tmp_path / "b", url), with_models=False) as second:
            boots = {state.usage.ledger.boot_id for state in (first, second)}
            assert living(first.database) == boots
            assert [leads(first.database, state.usage.ledger.boot_id) for state in (first, second)] == [True, False]
        assert living(first.database) == {first.usage.ledger.boot_id}
        beat = sa.update(process).values(beat=process.c.beat + 1)

        def wait(seconds: float) -> None:
            with first.database.write() as connection:
                connection.execute(beat)

        monkeypatch.setattr("app.db.server_lock.require_alone", partial(require_alone, wait=wait))
        with pytest.raises(SetupError, match="share this database are running"), build(alone, with_models=False):
            pytest.fail("it started")
    with build(alone, with_models=False) as state:
        assert living(state.database) == frozenset()
        with (
            pytest.raises(SetupError, match="shares nothing"),
            build(beside(tmp_path / "b", url), with_models=False),
        ):
            pytest.fail("it started")


def test_one_that_is_alone_has_no_row_and_no_thread_for_others(tmp_path: Path) -> None:
    with build(Settings(data_dir=tmp_path, _env_file=None), with_models=False) as state:
        assert living(state.database) == frozenset()
        names = {thread.name for thread in threading.enumerate()}

    assert names.isdisjoint({"footnote-presence", "footnote-strays"})


def test_beside_others_the_schema_is_only_checked(url: str, tmp_path: Path) -> None:
    database = Database.open(url)
    downgrade(database, "-1")
    database.close()

    with pytest.raises(SetupError, match="footnote migrate"), build(beside(tmp_path, url), with_models=False):
        pytest.fail("it started")


def test_beside_others_the_sums_keep_their_time_zone(url: str, tmp_path: Path) -> None:
    with build(beside(tmp_path / "a", url, reporting_zone="Europe/Berlin"), with_models=False):
        pass

    other = beside(tmp_path / "b", url)
    with pytest.raises(SetupError, match="time zone Europe/Berlin"), build(other, with_models=False):
        pytest.fail("it started")


def test_beside_others_the_embedder_is_theirs(url: str) -> None:
    database = Database.open(url)
    generations = IndexGenerationRepository(database)

    first = generations.join(TINY, source="tiny").active
    assert generations.join(TINY, source="tiny").active == first
    with pytest.raises(SetupError, match="search with the embedder tiny"):
        generations.join(OTHER, source="other")

    assert [found.model for found in generations.list()] == ["tiny"]
    database.close()


def test_two_first_starts_make_one_generation(url: str) -> None:
    databases = [Database.open(url) for _ in range(4)]
    together = threading.Barrier(len(databases))
    found: list[int] = []

    def join(database: Database) -> None:
        together.wait()
        found.append(IndexGenerationRepository(database).join(TINY, source="tiny").active.id)

    threads = [threading.Thread(target=join, args=(database,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for database in databases:
        database.close()

    assert len(found) == 4 and len(set(found)) == 1


def test_first_starts_at_the_same_time_make_one_admin_key(url: str) -> None:
    together = threading.Barrier(3)
    failed: list[BaseException] = []

    class Keys(KeyRepository):
        def list(self, *, tenant_id: str) -> tuple[ApiKey, ...]:
            found = super().list(tenant_id=tenant_id)
            with suppress(threading.BrokenBarrierError):
                together.wait(timeout=30)  # none has made it when all have looked
            together.abort()
            return found

    def start() -> None:
        database = Database.open(url)
        try:
            ensure_first_key(Keys(database), SecretStr(ADMIN_KEY), tenant_id="default", address="")
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            failed.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    database = Database.open(url)
    assert (failed, len(KeyRepository(database).list(tenant_id="default"))) == ([], 1)
    database.close()


def test_a_worker_loads_no_model_but_the_embedder(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path,
        database_url="postgresql://h/d",
        shared=True,
        role="worker",
        remote_url="http://gpu:8000/v1",
        remote_model="m",
        reranker="r",
        verifier="v",
        remote_api="chat",
        followup="model",
        _env_file=None,
    )

    worker = of_worker(settings)

    assert worker.extractive and worker.role == "worker" and worker.embedder == settings.embedder
    Settings(**worker.model_dump(), _env_file=None)  # what it leaves fits together


def test_a_worker_answers_only_how_it_is(url: str, tmp_path: Path) -> None:
    with build(beside(tmp_path, url, role="worker"), with_models=False) as state:
        app = create_app(lambda: nullcontext(state), version="0", operations_only=True)
        with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as http:
            statuses = [http.get(f"/{path}").status_code for path in ("healthz", "readyz", "metrics", "v1/documents")]

    assert statuses == [200, 503, 200, 404]


@pytest.mark.parametrize(("role", "ready"), [("api", True), ("all", False)])
def test_one_that_only_answers_is_ready_without_a_worker_and_changes_no_embedder(
    url: str, tmp_path: Path, role: str, ready: bool
) -> None:
    with build(beside(tmp_path, url, role=role), with_models=False) as bare:
        state = state_with(bare, models=stations(bare, NoEngine(revision="0", context_window=1)))
        app = create_app(lambda: nullcontext(state), version="0")
        with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as http:
            health = http.get("/readyz").json()
            refused = http.post("/v1/admin/generations/1/confirm")
        assert state.serving.models is not None
        state.serving.models.worker.stop()  # it was not started

    assert health["ready"] == ready
    assert ("ingestion: stopped" in health["reasons"]) != ready
    assert (refused.status_code, "FOOTNOTE_SHARED" in refused.json()["detail"]) == (409, True)
