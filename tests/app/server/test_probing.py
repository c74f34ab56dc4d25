"""app.server.model_loading: a server measures a generator that it does not know, a command does not."""

import json
import threading
from pathlib import Path

import pytest

from app.answering.generating.model_class import ModelClass
from app.probing.results import results_of
from app.server.bootstrap import build, build_loading
from app.settings import Settings
from tests.app.server.embedder_swaps import wait_until
from tests.generation.tiny import tiny_model, tiny_tokenizer
from tests.retrieval.encoder_folder import build_tiny_model
from tests.server import ADMIN_KEY


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with an embedder and a generator of random weights, whose context window has no room for a case."""
    build_tiny_model(tmp_path / "embedder")
    config = tmp_path / "embedder" / "tiny" / "sentence_bert_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "max_seq_length": 64}))
    tiny_model("llama", attention="sdpa").save_pretrained(tmp_path / "generator")
    tiny_tokenizer().save_pretrained(tmp_path / "generator")
    return Settings(
        data_dir=tmp_path / "data",
        embedder=str(tmp_path / "embedder" / "tiny"),
        generator=str(tmp_path / "generator"),
        reader="none",
        judge="none",
        device="cpu",
        kv_cache_mb=8,
        chunk_tokens=48,
        chunk_overlap=8,
        admin_key=ADMIN_KEY,
        _env_file=None,
    )


def kept(settings: Settings) -> list[Path]:
    return list((settings.data_dir / "probes").glob("*.json"))


def test_a_command_measures_nothing_by_itself(settings: Settings) -> None:
    with build(settings) as state:
        probe = state.serving.probe
        assert probe is not None
        assert (probe.standing.source, state.serving.served_class()) == ("unknown", ModelClass.QUOTES)
    assert kept(settings) == []


def test_a_server_measures_once_and_finds_the_result_at_the_next_start(settings: Settings) -> None:
    ready = threading.Event()
    with build_loading(settings, on_ready=ready.set, on_failure=ready.set) as state:
        assert state.serving.loading is not None
        state.serving.loading.start()
        assert ready.wait(60)
        assert state.serving.loading.failure is None
        probe = state.serving.probe
        assert probe is not None
        wait_until(lambda: probe.standing.source == "measured")
    [file] = kept(settings)
    result = results_of(settings).find(file.stem)
    assert result is not None
    assert (result.model, result.reading.reads.count, result.reading.reads.of) == ("generator", 0, 20)

    with build(settings) as again:
        assert again.serving.probe is not None
        assert again.serving.probe.standing.result == result
