"""app.models.adapter gives the generator the adapter that was trained on it, and no other."""

import json
from pathlib import Path

import pytest

from app.errors import SetupError
from app.models.adapter import (
    SHIPPED,
    adapter_status,
    choose_adapter,
    configured_adapter,
    read_adapter_manifest,
    write_adapter_manifest,
)
from app.models.catalog import ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT
from app.models.finetuned import FinetunedStatus
from app.settings import Settings
from generation.config import ADAPTER_FILES, AdapterConfig
from tests.app.models.fetched import fetched


def write_files(folder: Path, *, base: str | None = "HuggingFaceTB/SmolLM2-135M-Instruct") -> Path:
    """An adapter as peft leaves it; what it computes does not matter here."""
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    (folder / "adapter_model.safetensors").write_bytes(b"12345")
    return folder


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """What comes with Footnote."""
    folder = write_files(tmp_path / "generation" / "grounded-smollm2-135m")
    write_adapter_manifest(
        folder, name="grounded", base=SMOLLM2_135M_INSTRUCT, prompt_layout="1", licence="CC-BY-SA-4.0"
    )
    return folder


@pytest.fixture
def base(tmp_path: Path) -> str:
    return fetched(SMOLLM2_135M_INSTRUCT, tmp_path / "models")


def test_the_base_model_gets_the_shipped_adapter_wherever_its_folder_lies(base: str, shipped: Path) -> None:
    moved = Path(base).rename(Path(base).parent / "renamed")

    assert choose_adapter("auto", generator=str(moved), shipped=shipped) == AdapterConfig(
        folder=str(shipped), name="grounded"
    )


@pytest.mark.parametrize("generator", ["HuggingFaceTB/SmolLM2-135M-Instruct", "/no/such/folder", "gpt2"])
def test_a_generator_other_than_the_base_gets_no_adapter(generator: str, shipped: Path) -> None:
    assert choose_adapter("auto", generator=generator, shipped=shipped) is None


def test_the_same_name_over_other_weights_gets_none(base: str, shipped: Path) -> None:
    manifest = Path(base) / "footnote-model.json"
    manifest.write_text(manifest.read_text().replace(SMOLLM2_135M_INSTRUCT.weights.sha256, "0" * 64))

    assert choose_adapter("auto", generator=base, shipped=shipped) is None


def test_without_a_shipped_adapter_there_is_none(base: str, tmp_path: Path) -> None:
    assert choose_adapter("auto", generator=base, shipped=tmp_path / "absent") is None
    assert adapter_status("auto", shipped=tmp_path / "absent") == ()


def test_the_setting_none_chooses_no_adapter(base: str, shipped: Path) -> None:
    assert choose_adapter("none", generator=base, shipped=shipped) is None


@pytest.mark.parametrize("file", [*ADAPTER_FILES, "footnote-adapter.json"])
@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_damaged_adapter_is_never_loaded(base: str, shipped: Path, file: str, damage: str) -> None:
    if damage == "altered":
        (shipped / file).write_bytes(b"54321")
    else:
        (shipped / file).unlink()

    with pytest.raises(SetupError, match=r"damaged: install Footnote again, or set FOOTNOTE_ADAPTER=none\."):
        choose_adapter("auto", generator=base, shipped=shipped)
    assert not adapter_status("auto", shipped=shipped)[0].sound


def test_a_folder_with_a_manifest_is_checked_like_the_shipped_one(base: str, shipped: Path, tmp_path: Path) -> None:
    other = fetched(ALL_MINILM_L6_V2, tmp_path / "others")

    chosen = choose_adapter(str(shipped), generator=base, shipped=tmp_path / "absent")
    with pytest.raises(SetupError, match=r"was trained on SmolLM2-135M-Instruct, and the generator is all-MiniLM"):
        choose_adapter(str(shipped), generator=other, shipped=tmp_path / "absent")
    (shipped / "adapter_model.safetensors").write_bytes(b"54321")
    with pytest.raises(SetupError, match="is damaged"):
        choose_adapter(str(shipped), generator=base, shipped=tmp_path / "absent")
    (shipped / "footnote-adapter.json").write_text("{}")
    with pytest.raises(SetupError, match=r"footnote-adapter\.json that cannot be read"):
        choose_adapter(str(shipped), generator=base, shipped=tmp_path / "absent")

    assert chosen == AdapterConfig(folder=str(shipped), name="grounded")


@pytest.mark.parametrize(
    ("declared", "generator", "fits"),
    [
        ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", True),
        ("Qwen/Qwen3-0.6B", "/models/qwen3-0.6b", True),
        (None, "anything", True),
        ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", False),
    ],
)
def test_pefts_own_folder_goes_by_the_name_of_its_base(
    tmp_path: Path, declared: str | None, generator: str, fits: bool
) -> None:
    folder = write_files(tmp_path / "law", base=declared)

    if fits:
        assert choose_adapter(str(folder), generator=generator) == AdapterConfig(folder=str(folder), name="law")
        return
    with pytest.raises(SetupError, match="set FOOTNOTE_GENERATOR to that model, or FOOTNOTE_ADAPTER to none"):
        choose_adapter(str(folder), generator=generator)


def test_a_folder_without_an_adapter_says_what_the_setting_may_be(tmp_path: Path) -> None:
    for setting in (str(tmp_path), "/no/such/folder", "on"):
        with pytest.raises(SetupError, match=r"auto, none, or a folder with adapter_config\.json"):
            choose_adapter(setting, generator="gpt2")


def test_status_tells_base_licence_size_and_soundness_of_both(base: str, shipped: Path, tmp_path: Path) -> None:
    own = write_files(tmp_path / "law")
    size = 5 + (shipped / "adapter_config.json").stat().st_size

    first, second = adapter_status(str(own), shipped=shipped)

    assert first == FinetunedStatus(
        name="grounded",
        base="SmolLM2-135M-Instruct",
        licence="CC-BY-SA-4.0",
        folder=shipped,
        bytes=size,
        sound=True,
    )
    assert (second.name, second.base, second.licence, second.sound) == (
        "law",
        "SmolLM2-135M-Instruct",
        "unknown",
        True,
    )
    assert len(adapter_status(str(shipped), shipped=shipped)) == 1


def test_a_manifest_reads_back_as_it_was_written(shipped: Path) -> None:
    written = write_adapter_manifest(
        shipped, name="grounded", base=SMOLLM2_135M_INSTRUCT, prompt_layout="2", licence="Apache-2.0"
    )

    assert read_adapter_manifest(shipped) == written
    assert (written.prompt_layout, set(written.files)) == ("2", set(ADAPTER_FILES))


def test_a_remote_server_gets_none_and_a_folder_beside_it_is_refused(tmp_path: Path) -> None:
    remote = {"remote_url": "http://gpu:8080/v1", "remote_model": "big"}

    assert configured_adapter(Settings(_env_file=None, models_dir=tmp_path, **remote)) is None  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="FOOTNOTE_ADAPTER names a folder"):
        Settings(_env_file=None, adapter=str(tmp_path), **remote)  # type: ignore[arg-type]


def test_without_a_reader_the_shipped_adapter_stays_out_and_a_named_one_does_not(base: str, tmp_path: Path) -> None:
    models_dir = Path(base).parent
    fetched(ALL_MINILM_L6_V2, models_dir)

    def chosen(**settings: str) -> AdapterConfig | None:
        return configured_adapter(Settings(_env_file=None, models_dir=models_dir, **settings))  # type: ignore[arg-type]

    assert chosen() == AdapterConfig(folder=str(SHIPPED), name="grounded")
    assert chosen(reader="none") is None
    assert chosen(embedder="org/other") is None
    assert chosen(reader="none", adapter=str(SHIPPED)) == AdapterConfig(folder=str(SHIPPED), name="grounded")


def test_what_is_shipped_is_whole_and_small() -> None:
    manifest = read_adapter_manifest(SHIPPED)

    assert manifest is not None
    assert manifest.is_whole(SHIPPED)
    assert (manifest.base, manifest.base_sha256) == (SMOLLM2_135M_INSTRUCT.name, SMOLLM2_135M_INSTRUCT.weights.sha256)
    assert manifest.bytes <= 20_000_000
    declared = json.loads((SHIPPED / "adapter_config.json").read_text("utf-8"))["base_model_name_or_path"]
    assert declared == manifest.base  # and no folder of the machine it was trained on
    assert manifest.licence in (SHIPPED / "README.md").read_text("utf-8")
