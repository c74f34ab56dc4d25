"""app.models.span_reader gives the embedder the span reader that was trained from it, and no other."""

import json
from pathlib import Path

import pytest

from app.errors import SetupError
from app.models.catalog import ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT
from app.models.finetuned import FinetunedStatus
from app.models.span_reader import (
    SHIPPED,
    ReaderManifest,
    choose_reader,
    configured_reader,
    read_reader_manifest,
    reader_status,
    write_reader_manifest,
)
from app.settings import Settings
from retrieval.reader_config import Calibration, ReaderConfig
from tests.app.models.fetched import fetched

CALIBRATION = Calibration(slope=0.8, bias=-0.3, threshold=0.4)


def described(folder: Path, *, name: str = "span") -> ReaderManifest:
    """Write the manifest of the weights in `folder`."""
    return write_reader_manifest(
        folder, name=name, base=ALL_MINILM_L6_V2, licence="CC-BY-SA-4.0", slope=0.8, bias=-0.3, threshold=0.4
    )


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """What comes with Footnote; what it computes does not matter here."""
    folder = tmp_path / "retrieval" / "span-minilm-l6"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"12345")
    described(folder)
    return folder


@pytest.fixture
def base(tmp_path: Path) -> str:
    return fetched(ALL_MINILM_L6_V2, tmp_path / "models")


def test_the_base_model_gets_the_shipped_reader_wherever_its_folder_lies(base: str, shipped: Path) -> None:
    moved = Path(base).rename(Path(base).parent / "renamed")

    assert choose_reader("auto", embedder=str(moved), shipped=shipped) == ReaderConfig(
        folder=str(shipped), name="span", calibration=CALIBRATION
    )


@pytest.mark.parametrize("embedder", ["sentence-transformers/all-MiniLM-L6-v2", "/no/such/folder", "gpt2"])
def test_an_embedder_other_than_the_base_gets_no_span_reader(embedder: str, shipped: Path) -> None:
    assert choose_reader("auto", embedder=embedder, shipped=shipped) is None


def test_the_same_name_over_other_weights_gets_none(base: str, shipped: Path) -> None:
    manifest = Path(base) / "footnote-model.json"
    manifest.write_text(manifest.read_text().replace(ALL_MINILM_L6_V2.weights.sha256, "0" * 64))

    assert choose_reader("auto", embedder=base, shipped=shipped) is None


def test_without_a_shipped_reader_there_is_none(base: str, tmp_path: Path) -> None:
    assert choose_reader("auto", embedder=base, shipped=tmp_path / "absent") is None
    assert reader_status("auto", shipped=tmp_path / "absent") == ()


def test_the_setting_none_chooses_no_reader_even_without_an_embedder(base: str, shipped: Path, tmp_path: Path) -> None:
    assert choose_reader("none", embedder=base, shipped=shipped) is None
    assert configured_reader(Settings(_env_file=None, models_dir=tmp_path / "empty", reader="none")) is None


@pytest.mark.parametrize("file", ["model.safetensors", "footnote-reader.json"])
@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_damaged_reader_is_never_loaded(base: str, shipped: Path, file: str, damage: str) -> None:
    if damage == "altered":
        (shipped / file).write_bytes(b"54321")
    else:
        (shipped / file).unlink()

    with pytest.raises(SetupError, match=r"reader that .* is damaged: install Footnote again, or set FOOTNOTE_READER="):
        choose_reader("auto", embedder=base, shipped=shipped)
    assert not reader_status("auto", shipped=shipped)[0].sound


@pytest.mark.parametrize(
    "calibration",
    [
        None,
        [],
        {},
        {"slope": 1.0, "bias": 0.0},
        {"slope": "1", "bias": 0.0, "threshold": 0.5},
        {"slope": float("nan"), "bias": 0.0, "threshold": 0.5},
        {"slope": -1.0, "bias": 0.0, "threshold": 0.5},
        {"slope": 1.0, "bias": 0.0, "threshold": 1.5},
        {"slope": 1.0, "bias": 0.0, "threshold": 0.5, "more": 1},
    ],
)
def test_a_manifest_without_a_usable_calibration_is_damage(base: str, shipped: Path, calibration: object) -> None:
    content = json.loads((shipped / "footnote-reader.json").read_text())
    (shipped / "footnote-reader.json").write_text(json.dumps({**content, "calibration": calibration}))

    assert read_reader_manifest(shipped) is None
    with pytest.raises(SetupError, match="damaged"):
        choose_reader("auto", embedder=base, shipped=shipped)


def test_a_folder_is_checked_like_the_shipped_one(base: str, shipped: Path, tmp_path: Path) -> None:
    other = fetched(SMOLLM2_135M_INSTRUCT, tmp_path / "others")

    chosen = choose_reader(str(shipped), embedder=base, shipped=tmp_path / "absent")
    with pytest.raises(
        SetupError,
        match=r"was trained on all-MiniLM-L6-v2, and the embedder is SmolLM2-135M-Instruct: "
        r"set FOOTNOTE_EMBEDDER to that model, or FOOTNOTE_READER to none\.",
    ):
        choose_reader(str(shipped), embedder=other, shipped=tmp_path / "absent")
    (shipped / "model.safetensors").write_bytes(b"54321")
    with pytest.raises(SetupError, match=r"is damaged: its files are not those of its footnote-reader\.json"):
        choose_reader(str(shipped), embedder=base, shipped=tmp_path / "absent")
    (shipped / "footnote-reader.json").write_text("{}")
    with pytest.raises(SetupError, match=r"footnote-reader\.json that cannot be read"):
        choose_reader(str(shipped), embedder=base, shipped=tmp_path / "absent")

    assert chosen == ReaderConfig(folder=str(shipped), name="span", calibration=CALIBRATION)


@pytest.mark.parametrize("file", ["model.safetensors", "footnote-reader.json"])
def test_a_folder_without_a_reader_says_what_the_setting_may_be(base: str, shipped: Path, file: str) -> None:
    (shipped / file).unlink()

    for setting in (str(shipped), "/no/such/folder", "on"):
        with pytest.raises(
            SetupError, match=r"auto, none, or a folder with model\.safetensors and footnote-reader\.json\."
        ):
            choose_reader(setting, embedder=base)


def test_status_tells_base_licence_size_and_soundness_of_both(shipped: Path, tmp_path: Path) -> None:
    own = tmp_path / "law"
    own.mkdir()
    (own / "model.safetensors").write_bytes(b"123")

    first, second = reader_status(str(own), shipped=shipped)

    assert first == FinetunedStatus(
        name="span", base="all-MiniLM-L6-v2", licence="CC-BY-SA-4.0", folder=shipped, bytes=5, sound=True
    )
    assert (second.name, second.base, second.bytes, second.sound) == ("law", "unknown", 3, False)
    assert len(reader_status(str(shipped), shipped=shipped)) == 1


def test_a_manifest_reads_back_as_it_was_written_in_format_1(shipped: Path) -> None:
    written = described(shipped, name="other")
    content = json.loads((shipped / "footnote-reader.json").read_text())

    assert read_reader_manifest(shipped) == written
    assert content["format"] == 1
    assert content["calibration"] == {"slope": 0.8, "bias": -0.3, "threshold": 0.4}
    (shipped / "footnote-reader.json").write_text(json.dumps({**content, "format": 2}))
    assert read_reader_manifest(shipped) is None


def test_the_settings_choose_by_the_embedder_alone(base: str, shipped: Path) -> None:
    chosen = configured_reader(
        Settings(
            _env_file=None, models_dir=Path(base).parent, embedder=base, reader=str(shipped), generator="extractive"
        )
    )

    assert chosen is not None
    assert chosen.name == "span"


def test_what_is_shipped_is_whole_small_and_of_the_default_embedder() -> None:
    manifest = read_reader_manifest(SHIPPED)

    assert manifest is not None
    assert manifest.is_whole(SHIPPED)
    assert (manifest.base, manifest.base_sha256) == (ALL_MINILM_L6_V2.name, ALL_MINILM_L6_V2.weights.sha256)
    assert manifest.bytes <= 22_000_000, "six layers of half-precision weights"
    assert manifest.licence in (SHIPPED / "README.md").read_text("utf-8")
