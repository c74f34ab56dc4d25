"""Damaged backups, restores that fail half-way, and data folders that are in use."""

import gzip
import io
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from app.backup import data_dir as placement
from app.backup.archive import ArchiveWriter, BackupUnusable, read_archive
from app.backup.contents import FORMAT, MANIFEST, SUMMARY, Summary, original_of
from app.backup.data_dir import data_dir_lock
from app.errors import Conflict, SetupError
from tests.app.backup.backed_up import data_dir, files_of, installation, saved, settings_of
from tests.backups import restore
from tests.databases import migrated_file

__all__ = ["data_dir", "installation", "migrated_file", "saved"]


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
        "schema": "0020",
        "dialect": "sqlite",
        "settings": {},
    }
    return json.dumps({**fields, **changes}).encode()


SUMMARISED = Summary({}, 0, 0, (), ()).encode()


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({MANIFEST: manifest_of(schema="9999"), SUMMARY: SUMMARISED}, "newer Footnote .schema 9999"),
        ({MANIFEST: manifest_of(schema="0019"), SUMMARY: SUMMARISED}, "too old .* .schema 0019.*commit"),
        ({MANIFEST: manifest_of(format=FORMAT + 1), SUMMARY: SUMMARISED}, "newer Footnote"),
        ({MANIFEST: b"{}", SUMMARY: SUMMARISED}, "manifest cannot be read"),
        ({MANIFEST: manifest_of()}, "no summary"),
        ({MANIFEST: manifest_of(), "files/doc_1/1": b"x", SUMMARY: SUMMARISED}, "originals that its summary counts"),
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
    "name",
    [
        "files/../1",
        "files/a/-1",
        "files/a/00",
        "files/a/01",
        "files/a/1\n",
        "files/a/\u0661",
        "files/a/1/2",
        "files//1",
        "files/a.b/1",
        "a/1",
    ],
)
def test_no_name_leads_out_of_the_folder_of_originals(name):
    assert original_of(name) is None
