"""generation.weights: what a GPU is given, what it is refused, and what is said where there is none."""

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from generation import quantisation, weights
from generation.config import EngineConfig
from generation.errors import ModelUnavailable
from generation.weights import load_model

TOO_OLD = "The NVIDIA driver 570.86.10 is too old for CUDA 13.0, which needs 580."


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A machine with a GPU, where reading a model, quantising it and giving it a cache are written down."""
    events: list[str] = []
    model = SimpleNamespace(config=SimpleNamespace())
    model.to = lambda device: model

    def note(event: str, result: Any = None) -> Callable[..., Any]:
        def done(*_: object, **__: object) -> Any:
            events.append(event)
            return result

        return done

    monkeypatch.setattr(weights, "why_no_gpu", lambda: None)
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", note("read", model))
    monkeypatch.setattr(quantisation, "quantise", note("quantise"))
    monkeypatch.setattr(weights, "adopt_model", note("cache"))
    monkeypatch.setattr(torch.cuda, "empty_cache", note("empty"))
    return events


def test_eight_bits_are_refused_before_the_model_is_read(reading: list[str]) -> None:
    with pytest.raises(ModelUnavailable, match="8-bit weights are slower than native ones on a GPU"):
        load_model(EngineConfig(model="m", weights="int8"))

    assert reading == []


def test_the_cache_takes_half_of_what_four_bits_leave(reading: list[str]) -> None:
    load_model(EngineConfig(model="m", weights="int4"))

    assert reading == ["read", "quantise", "empty", "cache"]


def test_a_gpu_that_is_not_seen_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "why_no_gpu", lambda: TOO_OLD)

    with pytest.raises(ModelUnavailable, match=r"torch sees no GPU\. The NVIDIA driver .* is too old"):
        load_model(EngineConfig(model="m", device="cuda"))


@pytest.mark.parametrize(("driver", "warned"), [("570.86.10", True), (None, False)])
def test_a_model_on_the_cpu_of_a_machine_with_a_gpu_is_warned_of(
    driver: str | None, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(weights, "why_no_gpu", lambda: TOO_OLD)
    monkeypatch.setattr(weights, "driver_version", lambda: driver)

    with (
        caplog.at_level(logging.WARNING, logger="footnote.generation"),
        pytest.raises(ModelUnavailable, match="not on this machine"),
    ):
        load_model(EngineConfig(model="nowhere/nothing"))

    assert (TOO_OLD in caplog.text) is warned
    assert "requesting" not in caplog.text, "no hub is asked"
