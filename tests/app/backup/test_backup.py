"""app.backup: what was written comes back, whole and verified, or nothing changes."""

import gzip
import io
import itertools
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from app.backup import data_dir as placement
from app.backup.archive import ArchiveWriter, BackupUnusable, read_archive
from app.backup.contents import FORMAT, MANIFEST, SUMMARY, Manifest, Summary, is_rows, original_of, rows_name
from app.backup.data_dir import data_dir_lock
from app.backup.restore import restore
from app.backup.snapshot import back_up
from app.db.answer_citations import AnswerCitationRepository
from app.db.chunks import ChunkRepository
from app.db.migration import current_revision, head_revision, upgrade
from app.db.portable import RowLoader, count_rows, dump_rows
from app.db.session import Database
from app.db.tables import metadata
from app.documents.originals import FileStore
from app.errors import Conflict, SetupError
from app.settings import Settings
from retrieval.types import Scope
from tests.app.db.samples import Library
from tests.databases import migrated_file
from tests.postgres import empty_postgres, migrated_postgres

__all__ = ["migrated_file"]

TEXTS = {"a.txt": ("forty ships were counted", "nobody counted the lamps"), "b.txt": ("the harbour froze",)}


def settings_of(data_dir: Path, *, database_url: str = "") -> Settings:
    return Settings(data_dir=data_dir, database_url=database_url, _env_file=None)


def put(library: Library, files: FileStore, name: str, *texts: str) -> str:
    """Upload a document with its original and index it; its id."""
    content = "\n".join(texts)
    document = library.index(*texts, content=content, filename=name)
    received = files.receive([content.encode()], name="in", limit=1 << 20)
    files.place(received, document_id=document.id, version=document.version)
    return document.id


def fill(database: Database, data_dir: Path) -> list[str]:
    library, files = Library(database), FileStore(data_dir / "files")
    AnswerCitationRepository(database).record("req_1", tenant_id="t1", citations={"doc_1": 2})
    return [put(library, files, name, *texts) for name, texts in TEXTS.items()]


def rows_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.read() as connection:
        return {
            name: sorted((tuple(row) for row in connection.execute(sa.select(table))), key=repr)
            for name, table in metadata.tables.items()
        }


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


def test_a_restored_installation_has_the_same_rows_originals_and_words(data_dir, saved, tmp_path):
    restored = restore(settings_of(tmp_path / "new"), saved)

    before, after = opened(data_dir), opened(tmp_path / "new")
    assert rows_of(after) == rows_of(before)
    assert files_of(tmp_path / "new") == files_of(data_dir)
    assert current_revision(after) == head_revision() == restored.manifest.schema
    assert restored.summary.originals == 2
    assert restored.aside is None
    everything = Scope(tenant_id="t1")
    found = [
        ChunkRepository(database).search_text("who counted ships", scope=everything, k=9)
        for database in (before, after)
    ]
    assert found[0] == found[1] != []
    before.close()
    after.close()


def test_rows_move_between_the_two_kinds_of_database_and_back(data_dir, tmp_path):
    original = opened(data_dir)
    with migrated_postgres() as postgres:
        with original.read() as source, postgres.write() as target:
            loader = RowLoader(target)
            moved = sum(loader.load(part) for _, _, part in dump_rows(source))
            loader.finish()
        assert rows_of(postgres) == rows_of(original)
        with original.read() as connection:
            assert moved == sum(count_rows(connection).values())

        Library(postgres).index("the next key is free", content="more")  # sequences and counters go on
        back = Database.open(f"sqlite:///{tmp_path / 'back.db'}")
        upgrade(back)
        with postgres.read() as source, back.write() as target:
            loader = RowLoader(target)
            for _, _, part in dump_rows(source):
                loader.load(part)
        assert rows_of(back) == rows_of(postgres)
        back.close()
    original.close()


def test_a_backup_of_sqlite_restores_into_an_empty_postgresql_and_not_twice(data_dir, saved, tmp_path):
    with empty_postgres() as url:
        restore(settings_of(tmp_path / "new", database_url=url), saved)

        before, after = opened(data_dir), Database.open(url)
        assert rows_of(after) == rows_of(before)
        after.close()
        before.close()
        assert not (tmp_path / "new" / "footnote.db").exists()
        with pytest.raises(Conflict, match="not empty"):
            restore(settings_of(tmp_path / "other", database_url=url), saved)
    assert not placement.is_used(tmp_path / "other")


def test_a_file_that_is_there_is_kept_unless_forced(data_dir, tmp_path):
    target = tmp_path / "saved.tar.gz"
    target.write_bytes(b"something else")

    with pytest.raises(Conflict):
        back_up(settings_of(data_dir), target)
    assert target.read_bytes() == b"something else"
    back_up(settings_of(data_dir), target, force=True)
    assert next(read_archive(target)).name == MANIFEST
    assert target.stat().st_mode & 0o077 == 0, "it holds what only its owner may read"


def test_a_backup_that_is_broken_off_leaves_the_old_file_and_nothing_else(data_dir, tmp_path):
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "saved.tar.gz"
    target.write_bytes(b"the one before")

    def broken(what: str, done: int, total: int) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        back_up(settings_of(data_dir), target, force=True, report=broken)
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert target.read_bytes() == b"the one before"


def test_an_original_that_is_gone_or_altered_is_named_and_the_rest_is_saved(data_dir, tmp_path):
    (lost, altered) = sorted(path for path in (data_dir / "files").rglob("1") if path.is_file())
    lost.unlink()
    altered.write_bytes(b"bit rot")

    summary = back_up(settings_of(data_dir), tmp_path / "saved.tar.gz")

    assert summary.missing == (f"{lost.parent.name}/1",)
    assert summary.altered == (f"{altered.parent.name}/1",)
    assert restore(settings_of(tmp_path / "new"), tmp_path / "saved.tar.gz").summary == summary
    assert list(files_of(tmp_path / "new").values()) == [b"bit rot"]


def test_there_is_nothing_to_back_up_and_no_database_is_made(tmp_path):
    with pytest.raises(SetupError, match="nothing to back up"):
        back_up(settings_of(tmp_path / "empty"), tmp_path / "saved.tar.gz")
    assert not (tmp_path / "empty").exists()


def test_an_older_schema_comes_back_as_it_was_and_is_migrated_at_the_next_start(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    database = opened(old)
    upgrade(database, "0004")
    with database.write() as connection:
        connection.exec_driver_sql("INSERT INTO tenant (id, created_at) VALUES ('t1', 1.5)")
    database.close()
    back_up(settings_of(old), tmp_path / "saved.tar.gz")

    restore(settings_of(tmp_path / "new"), tmp_path / "saved.tar.gz")

    database = opened(tmp_path / "new")
    assert current_revision(database) == "0004"
    upgrade(database)
    assert rows_of(database)["tenant"] == [("t1", 1.5, "", None)]  # a tenant has a name since 0015, and may be disabled
    database.close()


def archive_of(target: Path, **members: bytes) -> Path:
    """An archive with these members, their checksums right."""
    with target.open("wb") as file, ArchiveWriter(file) as archive:
        for name, content in members.items():
            archive.add(name, io.BytesIO(content), size=len(content))
    return target


def manifest_of(**changes: object) -> bytes:
    fields = {
        "format": FORMAT,
        "footnote": "0",
        "created_at": 0.0,
        "schema": "0001",
        "dialect": "sqlite",
        "settings": {},
    }
    return json.dumps({**fields, **changes}).encode()


SUMMARISED = Summary({}, 0, 0, (), ()).encode()


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({MANIFEST: manifest_of(schema="9999"), SUMMARY: SUMMARISED}, "newer Footnote .schema 9999"),
        ({MANIFEST: manifest_of(format=FORMAT + 1), SUMMARY: SUMMARISED}, "newer Footnote"),
        ({MANIFEST: b"{}", SUMMARY: SUMMARISED}, "manifest cannot be read"),
        ({MANIFEST: manifest_of()}, "no summary"),
        ({SUMMARY: SUMMARISED}, "does not begin with a manifest"),
        ({MANIFEST: manifest_of(), "files/../../escaped/1": b"x", SUMMARY: SUMMARISED}, "members of another kind"),
        ({MANIFEST: manifest_of(), "/etc/passwd": b"x", SUMMARY: SUMMARISED}, "members of another kind"),
        (
            {MANIFEST: manifest_of(), "rows/tenant/000001.jsonl": b'{"table":"x","columns":[]}\n', SUMMARY: SUMMARISED},
            "do not fit its schema",
        ),
    ],
)
def test_what_is_not_our_backup_is_refused_and_nothing_is_made(members, sentence, tmp_path):
    source = archive_of(tmp_path / "strange.tar.gz", **members)

    with pytest.raises(BackupUnusable, match=sentence):
        restore(settings_of(tmp_path / "new"), source)
    assert [path.name for path in tmp_path.rglob("*") if path.name != "footnote.lock"] in (
        ["strange.tar.gz"],
        ["strange.tar.gz", "new"],
        ["new", "strange.tar.gz"],
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip at all", gzip.compress(b""), gzip.compress(b"not tar" * 1000)],
    ids=["nothing", "not gzip", "nothing in gzip", "not tar in gzip"],  # gzip's bytes hold the time
)
def test_a_file_of_another_kind_is_refused(content, tmp_path):
    (tmp_path / "strange").write_bytes(content)

    with pytest.raises(BackupUnusable):
        restore(settings_of(tmp_path / "new"), tmp_path / "strange")


def test_the_file_can_be_verified_without_footnote(saved, tmp_path):
    with tarfile.open(saved) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    sums = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()

    assert len(sums) == len([path for path in (tmp_path / "out").rglob("*") if path.is_file()]) - 1
    assert os.system(f"cd {tmp_path / 'out'} && sha256sum --quiet -c SHA256SUMS") == 0


def contents(path: Path) -> list[tuple[str, bytes]]:
    return [(member.name, member.content.read()) for member in read_archive(path)]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    members = {MANIFEST: b"{}", "files/doc_1/1": bytes(range(256)) * 9, "rows/job/000001.jsonl": b"[1]\n" * 99}
    return archive_of(tmp_path_factory.mktemp("small") / "whole.tar.gz", **members)


@hypothesis(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_flipped_byte_anywhere_is_refused_or_harmless(small, data):
    whole = small.read_bytes()
    position, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    flipped = small.with_name("flipped.tar.gz")
    flipped.write_bytes(whole[:position] + bytes([whole[position] ^ (1 << bit)]) + whole[position + 1 :])

    try:
        found = contents(flipped)
    except BackupUnusable:
        return
    assert found == contents(small), "a byte of gzip's own header, say its time"


@hypothesis(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_file_that_is_cut_off_anywhere_is_refused(small, data):
    whole = small.read_bytes()
    cut = small.with_name("cut.tar.gz")
    cut.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])

    with pytest.raises(BackupUnusable):
        contents(cut)


def test_an_installation_that_is_there_is_kept_and_with_force_moved_aside(data_dir, saved, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "footnote.db").write_bytes(b"the old one")
    (target / "models").mkdir()

    with pytest.raises(Conflict, match="--force"):
        restore(settings_of(target), saved)
    assert (target / "footnote.db").read_bytes() == b"the old one"

    restored = restore(settings_of(target), saved, force=True)
    assert restored.aside is not None
    assert (restored.aside / "footnote.db").read_bytes() == b"the old one"
    assert (target / "models").is_dir(), "what is not ours stays where it is"
    assert files_of(target) == files_of(data_dir)


def test_a_data_dir_in_use_is_refused(data_dir, saved):
    with data_dir_lock(data_dir), pytest.raises(SetupError, match="Another Footnote process"):
        restore(settings_of(data_dir), saved, force=True)
    assert not list(data_dir.glob("before-restore-*"))


def test_a_restore_that_fails_half_way_leaves_the_old_state(data_dir, saved):
    before = files_of(data_dir)

    def broken(what: str, done: int, total: int) -> None:
        if what.startswith("restoring"):
            raise ConnectionError

    with pytest.raises(ConnectionError):
        restore(settings_of(data_dir), saved, force=True, report=broken)
    assert files_of(data_dir) == before
    assert {path.name for path in data_dir.iterdir()} == {"files", "footnote.db", "footnote.lock"}


OLD, NEW = ("files", "footnote.db", "footnote.db-wal", "index"), ("files", "footnote.db")


def cut_off_at(data_dir: Path, step: int) -> bool:
    """A data dir whose placement was killed after `step` of its renames; whether the restore was declared ready."""
    for name in OLD:
        (data_dir / name).mkdir()
        (data_dir / name / "old").touch()
    part = placement.prepare(data_dir)
    for name in NEW:
        (part / name).mkdir()
        (part / name / "new").touch()
    aside, placing = data_dir / "before-restore-7", data_dir / "restore.placing-7"
    renames = [(part, data_dir / "restore.ready-7")]
    renames += [(data_dir / name, aside / name) for name in OLD]
    renames += [(data_dir / "restore.ready-7", placing)]
    renames += [(placing / name, data_dir / name) for name in NEW]
    for source, target in itertools.islice(renames, step):
        target.parent.mkdir(exist_ok=True)
        source.rename(target)
    return step > 0


@pytest.mark.parametrize("step", range(9))
def test_a_crash_between_any_two_renames_leaves_the_old_or_the_new_at_the_next_start(step, tmp_path):
    ready = cut_off_at(tmp_path, step)

    with data_dir_lock(tmp_path):
        mark, names = ("new", NEW) if ready else ("old", OLD)
        assert all((tmp_path / name / mark).exists() for name in names)
        assert {path.parent.name for path in tmp_path.glob("*/*") if path.name in {"old", "new"}} == set(names)
        if ready:
            assert all((tmp_path / "before-restore-7" / name / "old").exists() for name in OLD)
            assert not list(tmp_path.glob("restore.*"))


@pytest.mark.parametrize(
    "name", ["files/../1", "files/a/0", "files/a/01", "files/a/1/2", "files//1", "files/a.b/1", "a/1"]
)
def test_no_name_leads_out_of_the_folder_of_originals(name):
    assert original_of(name) is None


def test_the_manifest_says_what_matters_and_no_secret(saved):
    members = {member.name: member.content.read() for member in read_archive(saved)}
    manifest = Manifest.decode(members[MANIFEST])

    assert manifest.schema == head_revision()
    assert manifest.settings["embedder"] == "all-MiniLM-L6-v2"
    assert not [name for name in manifest.settings if "key" in name or "url" in name]


def test_every_table_has_a_name_that_a_backup_knows_again() -> None:
    assert [name for name in metadata.tables if not is_rows(rows_name(name, 1))] == []
