"""ingestion.archive writes what an archive holds where it is told to, and nowhere else."""

import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.archive import Member, expand
from ingestion.errors import Encrypted, IngestionError, LimitExceeded, Malformed
from ingestion.types import ExtractionLimits
from tests.ingestion.zip_file import encrypted_zip_bytes, with_declared_sizes, zip_bytes

MIB = 1 << 20
LIMITS = ExtractionLimits(expanded_bytes=MIB)


def expanded(folder: Path, data: bytes, *, most: int = 10, password: str | None = None) -> list[Member]:
    path, into = folder / "upload.zip", folder / "into"
    path.write_bytes(data)
    into.mkdir(exist_ok=True)
    return expand(path, into, limits=LIMITS, most=most, password=password)


def left_over(folder: Path) -> list[Path]:
    return list((folder / "into").iterdir())


def test_each_document_is_a_file_named_by_its_number(tmp_path: Path) -> None:
    members = expanded(tmp_path, zip_bytes({"a.txt": "one", "sub/ü.md": "zwei", "in.zip": zip_bytes({"b": "x"})}))

    assert [(member.name, member.path.name) for member in members] == [
        ("a.txt", "000000"), ("sub/ü.md", "000001"), ("in.zip", "000002"),
    ]  # fmt: skip
    assert members[1].path.read_text() == "zwei"
    assert [member.bytes for member in members] == [member.path.stat().st_size for member in members]


def test_folders_hidden_files_and_what_systems_leave_are_passed_over(tmp_path: Path) -> None:
    names = ["folder/", ".hidden", "a/.git/config", "__MACOSX/a.txt", "a/Thumbs.db", "a/kept.txt"]

    assert [member.name for member in expanded(tmp_path, zip_bytes(dict.fromkeys(names, "")))] == ["a/kept.txt"]


def test_a_link_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "upload.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")

    assert expanded(tmp_path, path.read_bytes()) == []


@pytest.mark.parametrize("name", ["../a", "a/../../b", "/etc/passwd", "..\\a", "C:\\a", "x" * 2000])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Malformed, match="outside"):
        expanded(tmp_path, zip_bytes({"first.txt": "x", name: "x"}))

    assert left_over(tmp_path) == []


def test_bytes_are_counted_as_they_come_out_over_all_members(tmp_path: Path) -> None:
    halves = zip_bytes({"a": bytes(MIB * 2 // 3), "b": bytes(MIB * 2 // 3)})

    with pytest.raises(LimitExceeded, match="expands"):
        expanded(tmp_path, halves)
    with pytest.raises((LimitExceeded, Malformed)):
        expanded(tmp_path, with_declared_sizes(zip_bytes({"a": bytes(2 * MIB)}), 1))
    assert left_over(tmp_path) == []


def test_more_documents_than_asked_for_are_refused(tmp_path: Path) -> None:
    data = zip_bytes({f"{number}.txt": "x" for number in range(3)})

    assert len(expanded(tmp_path, data, most=3)) == 3
    for path in left_over(tmp_path):
        path.unlink()
    with pytest.raises(LimitExceeded, match="more than 2 documents"):
        expanded(tmp_path, data, most=2)
    assert left_over(tmp_path) == []


def test_a_password_opens_members_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    data = encrypted_zip_bytes({"a.txt": b"closed " * 20}, password="hunter2")

    with pytest.raises(Encrypted, match="with the password"):
        expanded(tmp_path, data)
    for wrong in ("hunter3", "", "é"):
        with pytest.raises(Encrypted, match="password is wrong") as caught:
            expanded(tmp_path, data, password=wrong)
        assert not wrong or wrong not in str(caught.value)
    assert left_over(tmp_path) == []
    assert expanded(tmp_path, data, password="hunter2")[0].path.read_bytes() == b"closed " * 20


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    names=st.lists(st.text(st.sampled_from("ab./\\: \u202e"), min_size=1, max_size=8), max_size=4, unique=True),
    noise=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=5),
)
def test_whatever_an_archive_says_nothing_is_written_beside_the_folder(
    tmp_path: Path, names: list[str], noise: list[tuple[int, int]]
) -> None:
    data = bytearray(zip_bytes(dict.fromkeys(names, "content")))
    for at, byte in noise:
        data[at % len(data)] = byte

    try:
        members = expanded(tmp_path, bytes(data))
    except IngestionError:
        members = []

    assert sorted(left_over(tmp_path)) == [member.path for member in members]
    assert {path.name for path in tmp_path.iterdir()} == {"upload.zip", "into"}
    for member in members:
        assert ".." not in member.name.split("/")
        member.path.unlink()
