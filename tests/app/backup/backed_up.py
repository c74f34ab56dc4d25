"""A small installation, and a backup of it."""

import shutil
from pathlib import Path

import pytest

from app.db.answer_citations import AnswerCitationRepository
from app.db.session import Database
from app.documents.files import DocumentFiles
from app.documents.ports import new_object_name
from app.settings import Settings
from tests import originals
from tests.app.db.samples import Library
from tests.backups import back_up

TEXTS = {"a.txt": ("forty ships were counted", "nobody counted the lamps"), "b.txt": ("the harbour froze",)}


def settings_of(data_dir: Path, *, database_url: str = "") -> Settings:
    return Settings(data_dir=data_dir, database_url=database_url, _env_file=None)


def put(library: Library, files: DocumentFiles, name: str, *texts: str) -> str:
    """Upload a document with its original and index it; its id."""
    content = "\n".join(texts)
    original = new_object_name()
    originals.put(files, original, content.encode())
    return library.index(*texts, content=content, filename=name, original=original).id


def fill(database: Database, data_dir: Path) -> list[str]:
    library, files = Library(database), originals.files_in(data_dir, database)
    AnswerCitationRepository(database).record("req_1", tenant_id="t1", citations={"doc_1": 2})
    return [put(library, files, name, *texts) for name, texts in TEXTS.items()]


def files_of(data_dir: Path) -> dict[str, bytes]:
    folder = data_dir / "files"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def installation(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data dir with two documents, and its backup beside it; to copy."""
    folder = tmp_path_factory.mktemp("installation")
    (folder / "data").mkdir()
    shutil.copy(migrated_file, folder / "data" / "footnote.db")
    database = opened(folder / "data")
    fill(database, folder / "data")
    database.close()
    back_up(settings_of(folder / "data"), folder / "saved.tar.gz")
    return folder


@pytest.fixture
def data_dir(installation: Path, tmp_path: Path) -> Path:
    """An installation with two documents, stopped."""
    return Path(shutil.copytree(installation / "data", tmp_path / "data"))


@pytest.fixture
def saved(installation: Path) -> Path:
    """Its backup."""
    return installation / "saved.tar.gz"


def opened(data_dir: Path) -> Database:
    return Database.open(f"sqlite:///{data_dir / 'footnote.db'}")
