"""`footnote check` looks at the adapter and the reader too."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.models.adapter import write_adapter_manifest
from app.models.catalog import ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT
from app.models.reader import write_reader_manifest
from tests.app.models.fetched import fetched


def test_a_damaged_adapter_is_wrong_and_a_sound_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fetched(SMOLLM2_135M_INSTRUCT, tmp_path / "models")
    adapter = tmp_path / "mine"
    adapter.mkdir()
    (tmp_path / "data").mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({}))
    (adapter / "adapter_model.safetensors").write_bytes(b"12345")
    write_adapter_manifest(adapter, name="law", base=SMOLLM2_135M_INSTRUCT, prompt_layout="1", licence="MIT")
    environment = {
        "FOOTNOTE_DATA_DIR": str(tmp_path / "data"),
        "FOOTNOTE_MODELS_DIR": str(tmp_path / "models"),
        "FOOTNOTE_EMBEDDER": "org/embedder",
        "FOOTNOTE_ADAPTER": str(adapter),
        "COLUMNS": "400",
    }

    sound = CliRunner().invoke(cli, ["check"], env=environment)
    (adapter / "adapter_model.safetensors").write_bytes(b"54321")
    damaged = CliRunner().invoke(cli, ["check"], env=environment)

    assert sound.exit_code == 0, sound.output
    assert "adapter law" in sound.output
    assert damaged.exit_code == 1
    assert "is damaged: its files are not those of its footnote-adapter.json" in damaged.output


def test_a_damaged_reader_is_wrong_and_a_sound_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fetched(ALL_MINILM_L6_V2, tmp_path / "embedders")
    reader = tmp_path / "mine"
    reader.mkdir()
    (tmp_path / "data").mkdir()
    (reader / "model.safetensors").write_bytes(b"12345")
    write_reader_manifest(reader, name="law", base=ALL_MINILM_L6_V2, licence="MIT", slope=1, bias=0, threshold=0.5)
    environment = {
        "FOOTNOTE_DATA_DIR": str(tmp_path / "data"),
        "FOOTNOTE_MODELS_DIR": str(tmp_path / "models"),
        "FOOTNOTE_EMBEDDER": str(tmp_path / "embedders" / ALL_MINILM_L6_V2.name),
        "FOOTNOTE_GENERATOR": "extractive",
        "FOOTNOTE_READER": str(reader),
        "COLUMNS": "400",
    }

    sound = CliRunner().invoke(cli, ["check"], env=environment)
    (reader / "model.safetensors").write_bytes(b"54321")
    damaged = CliRunner().invoke(cli, ["check"], env=environment)

    assert sound.exit_code == 0, sound.output
    assert "reader law" in sound.output
    assert damaged.exit_code == 1
    assert "is damaged: its files are not those of its footnote-reader.json" in damaged.output
