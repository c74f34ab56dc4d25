"""app.server.bootstrap: every engine setting reaches the engine, and currencies must match."""

import asyncio
import threading
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from app.admission.admission import generation_slots
from app.errors import SetupError
from app.models import loading
from app.models.loading import engine_config, load_reranker, remote_config, sized
from app.server import model_loading
from app.server.bootstrap import build, build_loading
from app.settings import Settings
from app.types import Principal, Role
from generation.config import AdapterConfig, EngineConfig
from generation.remote_config import RemoteConfig
from retrieval.errors import RerankerUnavailable
from tests.retrieval.cross_encoder_folder import build_bert


def test_the_defaults_of_the_settings_are_the_engines_own() -> None:
    assert engine_config(Settings(_env_file=None), generator="m") == EngineConfig(model="m")


def test_every_engine_setting_reaches_the_engine(tmp_path: Path) -> None:
    settings = Settings(
        device="cpu",
        dtype="float32",
        max_running=3,
        max_waiting=5,
        step_tokens=99,
        context_window=512,
        kv_cache_mb=7,
        weights="int8",
        draft_model=str(tmp_path),
        _env_file=None,
    )

    assert engine_config(settings, generator="m") == EngineConfig(
        model="m",
        device="cpu",
        dtype="float32",
        max_running=3,
        max_waiting=5,
        step_tokens=99,
        context_window=512,
        kv_cache_bytes=7 * 2**20,
        weights="int8",
        draft_model=str(tmp_path),
    )
    assert not engine_config(Settings(speculation=False, _env_file=None), generator="m").speculation


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "driver_version", lambda: "580.95.05")
    monkeypatch.setattr(loading, "why_no_gpu", lambda: None)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("chosen", "sizes"),
    [
        ({}, (64, 2048)),
        ({"device": "cuda"}, (64, 2048)),
        ({"device": "cpu"}, (8, 512)),
        ({"remote_url": "http://gpu:8000/v1", "remote_model": "m"}, (8, 512)),
        ({"generator": "extractive"}, (8, 512)),
        ({"max_running": 8}, (8, 2048)),
        ({"step_tokens": 512}, (64, 512)),
        ({"step_tokens": 32}, (32, 32)),
    ],
    ids=str,
)
def test_on_a_gpu_batches_are_larger_unless_they_are_set(chosen: dict[str, Any], sizes: tuple[int, int]) -> None:
    settings = sized(Settings(**chosen, _env_file=None))

    assert (settings.max_running, settings.step_tokens) == sizes


@pytest.mark.usefixtures("gpu")
def test_sizes_of_the_environment_are_set_ones_and_the_engine_gets_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_MAX_RUNNING", "8")

    config = engine_config(Settings(_env_file=None), generator="m")

    assert (config.max_running, config.step_tokens) == (8, 2048)


def test_a_gpu_that_torch_does_not_see_changes_no_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "driver_version", lambda: "470.1")
    monkeypatch.setattr(loading, "why_no_gpu", lambda: "The NVIDIA driver is too old.")
    settings = Settings(_env_file=None)

    assert sized(settings) is settings


@pytest.mark.usefixtures("gpu")
async def test_admission_is_widened_once_the_generator_is_there_and_torch_is_not_asked_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Generator:
        def close(self) -> None:
            """Nothing to close."""

    def no_probe(*_: object) -> None:
        raise SetupError("far enough")

    asked: list[str] = []
    failed = threading.Event()
    monkeypatch.setattr(loading, "why_no_gpu", lambda: asked.append("torch"))
    monkeypatch.setattr(model_loading, "load_embedder", lambda _: None)
    monkeypatch.setattr(model_loading, "load_generator", lambda *_: (None, "1", Generator()))
    monkeypatch.setattr(model_loading, "EngineCounters", MagicMock())
    monkeypatch.setattr(model_loading, "_probe", no_probe)
    settings = Settings(data_dir=tmp_path, _env_file=None)
    with build_loading(settings, on_ready=failed.set, on_failure=failed.set) as state:
        queue = state.limits.admission.generation_slots
        before = generation_slots(settings)
        assert not asked
        assert state.serving.loading is not None
        state.serving.loading.start()
        assert await asyncio.to_thread(failed.wait, 60)

        waiters = [queue.join("tenant", "key") for _ in range(before + 2 * (64 - 8))]
        for waiter in waiters:
            queue.start(waiter)

        assert queue.held == before + 2 * (64 - 8) and asked


def test_the_chosen_adapter_reaches_the_engine_and_one_of_another_model_does_not(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "org/m"}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    settings = Settings(adapter=str(tmp_path), _env_file=None)

    assert engine_config(settings, generator="m") == EngineConfig(
        model="m", adapter=AdapterConfig(folder=str(tmp_path), name=tmp_path.name)
    )
    with pytest.raises(SetupError, match="was trained on m, and the generator is other"):
        engine_config(settings, generator="org/other")


def test_a_draft_model_that_is_not_here_is_a_setup_error() -> None:
    with pytest.raises(SetupError):
        engine_config(Settings(draft_model="/no/such/folder", _env_file=None), generator="m")


def test_every_remote_setting_reaches_the_remote_engine() -> None:
    settings = Settings(
        remote_url="http://gpu:8080/v1",
        remote_model="m",
        remote_api="chat",
        remote_api_key="fn_secret",
        context_window=512,
        max_running=3,
        max_waiting=5,
        max_waiting_tokens=700,
        _env_file=None,
    )

    assert remote_config(settings) == RemoteConfig(
        base_url="http://gpu:8080/v1",
        model="m",
        api="chat",
        api_key="fn_secret",
        context_window=512,
        max_running=3,
        max_waiting=5,
        max_waiting_tokens=700,
    )


def test_a_remote_address_with_a_password_is_a_setup_error_that_does_not_repeat_it() -> None:
    settings = Settings(remote_url="http://me:hidden@gpu/v1", remote_model="m", _env_file=None)

    with pytest.raises(SetupError, match="credentials") as failure:
        remote_config(settings)

    assert "hidden" not in str(failure.value)


def test_no_reranker_is_loaded_unless_the_settings_name_one() -> None:
    assert load_reranker(Settings(_env_file=None)) is None


def test_the_named_reranker_is_loaded_in_the_precision_of_the_settings(tmp_path: Path) -> None:
    folder = build_bert(tmp_path)

    reranker = load_reranker(Settings(reranker=str(folder), device="cpu", dtype="float32", _env_file=None))

    assert reranker is not None
    assert reranker.model == "tiny"


def test_a_reranker_that_is_not_here_stops_the_start_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="There is no model"):
        load_reranker(Settings(reranker=str(tmp_path / "nowhere"), _env_file=None))
    with pytest.raises(RerankerUnavailable, match="footnote models"):
        load_reranker(Settings(reranker="acme/reranker", _env_file=None))


def test_a_start_in_another_currency_than_that_of_the_prices_is_refused(tmp_path: Path) -> None:
    dollars = Settings(data_dir=tmp_path, _env_file=None)
    with build(dollars, with_models=False) as state:
        admin = Principal("default", "root", "k0", Role.ADMIN)
        state.usage.prices.add(admin, model="m1", meter="input", price_per_million="1")

    with (
        pytest.raises(SetupError, match="FOOTNOTE_CURRENCY"),
        build(Settings(data_dir=tmp_path, currency="eur", _env_file=None), with_models=False),
    ):
        pass
    with build(dollars, with_models=False):
        pass
