"""`footnote models list` says what is here, what is in use, and what a sequence costs."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.models import commands
from app.models.catalog import ALL_MINILM_L6_V2
from app.models.manifest import write_manifest
from app.models.span_reader import write_reader_manifest


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Variables for an installation without fetched models, whose generator is a folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "generator"
    folder.mkdir()
    shape = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64}
    (folder / "config.json").write_text(
        json.dumps({"model_type": "llama", "max_position_embeddings": 1024, "architectures": None, **shape})
    )
    return {
        "FOOTNOTE_MODELS_DIR": str(tmp_path / "models"),
        "FOOTNOTE_GENERATOR": str(folder),
        "FOOTNOTE_DEVICE": "cpu",
        "FOOTNOTE_DTYPE": "float32",
        "FOOTNOTE_KV_CACHE_MB": "8",
    }


def listed(environment: dict[str, str]) -> str:
    result = CliRunner().invoke(commands, ["list"], env=environment, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_a_folder_with_only_a_configuration_tells_what_a_sequence_costs(environment: dict[str, str]) -> None:
    report = listed(environment)

    assert "not fetched" in report
    assert "2 · 2 layers · 2 kv heads · 16 head dim · 1024 tokens · 4 bytes (float32) = 0.5 MiB" in report
    assert "16 such sequences fit in FOOTNOTE_KV_CACHE_MB=8." in report


def test_a_generator_that_is_not_here_is_said_in_place_of_its_cost(environment: dict[str, str]) -> None:
    report = listed({**environment, "FOOTNOTE_GENERATOR": "SmolLM2-135M-Instruct"})

    assert "Keys and values: The model SmolLM2-135M-Instruct is not on this machine yet." in report


def test_with_a_remote_server_the_generator_is_its_model_and_costs_nothing_here(environment: dict[str, str]) -> None:
    remote = {
        "FOOTNOTE_REMOTE_URL": "http://gpu:8080/v1",
        "FOOTNOTE_REMOTE_MODEL": "big",
        "FOOTNOTE_REMOTE_API_KEY": "k",
    }

    report = listed({**environment, **remote})

    assert "generator big at a remote server, tokenizer " in report
    assert "Keys and values" not in report
    assert "generator big at a remote server, messages" in listed(
        {**environment, **remote, "FOOTNOTE_REMOTE_API": "chat"}
    )


def test_an_adapter_is_listed_with_its_base_and_whether_it_is_loaded(
    environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "law"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "somewhere/generator"}))
    (folder / "adapter_model.safetensors").write_bytes(bytes(2_000_000))

    fitting = listed({**environment, "FOOTNOTE_ADAPTER": str(folder)})
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "somewhere/else"}))
    foreign = listed({**environment, "FOOTNOTE_ADAPTER": str(folder)})

    assert "generator+law" in fitting
    assert "2 MB" in fitting
    assert "sound, loaded" in fitting
    assert "with adapter law" in fitting
    assert "sound, not loaded" in foreign
    assert "was trained on else, and the generator is generator" in foreign


def test_a_reader_is_listed_with_its_base_and_whether_it_is_loaded(environment: dict[str, str], tmp_path: Path) -> None:
    folder, embedder = tmp_path / "span", tmp_path / "embedder"
    for made in (folder, embedder):
        made.mkdir()
        (made / "model.safetensors").write_bytes(bytes(2_000_000))
    write_manifest(embedder, ALL_MINILM_L6_V2, converted_by={})
    write_reader_manifest(folder, name="span", base=ALL_MINILM_L6_V2, licence="MIT", slope=1, bias=0, threshold=0.5)
    named = {**environment, "FOOTNOTE_READER": str(folder)}

    fitting = listed({**named, "FOOTNOTE_EMBEDDER": str(embedder)})
    foreign = listed({**named, "FOOTNOTE_EMBEDDER": "org/embedder"})

    assert re.search(r"all-MiniLM-L6-v2\+span +reader +MIT +2 MB +sound, loaded", fitting)
    assert f"embedder {embedder} with reader span, generator" in fitting.replace("\n", "")
    assert re.search(r"all-MiniLM-L6-v2\+span +reader +MIT +2 MB +sound, not loaded", foreign)
    assert "Reader: The reader" in foreign
    assert "was trained on all-MiniLM-L6-v2, and the embedder is embedder" in foreign


def test_larger_models_are_listed_with_their_memory_and_whether_they_fit(environment: dict[str, str]) -> None:
    wide = {**environment, "FOOTNOTE_DTYPE": "bfloat16", "COLUMNS": "200"}
    result = CliRunner().invoke(commands, ["list", "--fit"], env=wide, catch_exceptions=False)

    assert re.search(r"Qwen/Qwen3-32B +32.8 billion +Apache-2.0 +about 80 GB +(yes|no)", result.output)
    assert "of memory free" in result.output
    assert "footnote models add MODEL" in result.output
