"""generation.memory chooses a layout that works on the device."""

import logging

import pytest
import torch

from generation.config import EngineConfig
from generation.memory import Pages, Slabs, kernels_agree, memory_of
from generation.weights import LoadedModel, adopt_model
from tests.generation.tiny import tiny_model

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return adopt_model(tiny_model("llama", attention="eager"), EngineConfig(model="tiny", kv_cache_bytes=1 << 20))


def test_a_cpu_gets_slabs_and_pages_when_asked(loaded: LoadedModel) -> None:
    common = {"block_tokens": 16, "prefix_cache": True, "poison": False}

    assert isinstance(memory_of(loaded, layout=None, **common), Slabs)  # type: ignore[arg-type]
    assert isinstance(memory_of(loaded, layout="pages", **common), Pages)  # type: ignore[arg-type]


@pytest.mark.skipif(torch.cuda.is_available(), reason="here they run")
def test_failing_kernels_are_logged_and_slabs_used_instead(
    loaded: LoadedModel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="footnote.generation"):
        assert not kernels_agree(loaded)

    assert "slabs are used instead" in caplog.text
