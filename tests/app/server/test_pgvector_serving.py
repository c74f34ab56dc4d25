"""FOOTNOTE_VECTOR_STORE=pgvector: an application searches in PostgreSQL, through an embedder's change and a restart."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.documents.adapters.pgvector_store import PgVectors
from app.errors import SetupError
from app.server.bootstrap import build
from app.settings import Settings
from tests.app.server.embedder_swaps import GatedEmbedder, Served, served, wait_until
from tests.installation import installed
from tests.postgres import empty_postgres

TEXTS = [f"The keeper of tower{number} counted ships{number} in winter{number}." for number in range(5)]


@pytest.fixture
def url() -> Iterator[str]:
    with empty_postgres() as url:
        yield url


def tables(application: Served) -> list[str]:
    """The tables of vectors, without their partitions."""
    named = sa.text("SELECT relname FROM pg_class WHERE relkind = 'p' ORDER BY relname")
    with application.state.database.read() as connection:
        return list(connection.execute(named).scalars())


def assert_equal_to_sql(application: Served) -> None:
    index = application.serving.current().index
    assert isinstance(index, PgVectors)
    differences = index.repair(only_tell=True)
    assert (differences.missing, differences.surplus) == (0, 0)


def test_documents_are_found_and_gone_and_found_again_after_a_restart(tmp_path: Path, url: str) -> None:
    pgvector = {"database_url": url, "vector_store": "pgvector"}
    embedder = GatedEmbedder(dim=64)
    with served(tmp_path / "data", embedder, **pgvector) as application:
        ids = application.upload(*TEXTS)
        assert [application.found(text) for text in TEXTS] == [[one] for one in ids]
        application.http.delete(f"/v1/documents/{ids[0]}")
        assert set(application.found(TEXTS[0], top_k=9)) == set(ids[1:])
        assert_equal_to_sql(application)
        assert application.http.get("/readyz").json()["checks"]["index"]["vectors"] == len(TEXTS) - 1

    assert not (tmp_path / "data" / "index").exists(), "nothing is kept beside the database"
    with served(tmp_path / "data", embedder, **pgvector) as application:
        assert application.found(TEXTS[1]) == [ids[1]]
        assert_equal_to_sql(application)


def test_an_embedder_is_changed_rolled_back_and_confirmed(tmp_path: Path, url: str) -> None:
    pgvector = {"database_url": url, "vector_store": "pgvector"}
    old, new = GatedEmbedder(dim=64), GatedEmbedder(dim=96)
    with served(tmp_path / "data", old, **pgvector) as application:
        ids = application.upload(*TEXTS)
    with served(tmp_path / "data", new, old, **pgvector) as application:
        application.swapped()
        assert application.serves(new)
        (late,) = application.upload("A lighthouse stood at the harbour.")
        application.http.delete(f"/v1/documents/{ids[0]}")  # the old generation's table is not told
        assert tables(application) == ["chunk_vector_g1", "chunk_vector_g2"]
        assert application.http.post("/v1/admin/generations/2/rollback").status_code < 300
        wait_until(lambda: application.serves(old))
        application.swapped()
        assert application.found("A lighthouse stood at the harbour.") == [late]
        assert set(application.found(TEXTS[0], top_k=9)) == {*ids[1:], late}
        assert_equal_to_sql(application)


def test_faiss_fills_the_table_of_who_changes_to_pgvector(tmp_path: Path, url: str) -> None:
    embedder = GatedEmbedder(dim=64)
    with served(tmp_path / "data", embedder, database_url=url) as application:
        ids = application.upload(*TEXTS)
        assert tables(application) == []
    with served(tmp_path / "data", embedder, database_url=url, vector_store="pgvector") as application:
        assert [application.found(text) for text in TEXTS] == [[one] for one in ids]
        assert_equal_to_sql(application)


def test_on_sqlite_pgvector_is_refused_by_name_before_models_are_loaded(tmp_path: Path) -> None:
    settings = Settings(data_dir=installed(tmp_path / "data"), vector_store="pgvector", _env_file=None)

    with pytest.raises(SetupError, match=r"FOOTNOTE_VECTOR_STORE=pgvector .* SQLite: set FOOTNOTE_DATABASE_URL"):
        with build(settings, with_models=False):
            pass


def test_the_default_imports_neither_pgvector_nor_its_driver() -> None:
    program = (
        "import sys, app.server.bootstrap, app.server.assembly, app.server.model_loading;"
        "print([name for name in sys.modules if 'pgvector' in name or name.split('.')[0] == 'psycopg'])"
    )

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
