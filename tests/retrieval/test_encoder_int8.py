"""retrieval.encoder_int8 stays close to the float32 layers it replaces."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from retrieval.encoder import SentenceEncoder
from retrieval.encoder_int8 import quantise_linears, supports_int8
from tests.retrieval.encoder_folder import TEXTS, build_tiny_model

pytestmark = [
    pytest.mark.skipif(not supports_int8(), reason="this processor has no AVX512-VNNI"),
    pytest.mark.usefixtures("one_thread"),
]


class Attention(nn.Module):
    """Three layers that read one input, as transformers names them; `key` differs in size."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.query(x), self.key(x), self.value(x)], dim=-1)


class Intermediate(nn.Module):
    """A layer and its activation, as transformers names them."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.dense, self.intermediate_act_fn = nn.Linear(64, 128), activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.intermediate_act_fn(self.dense(x))
        return y


def with_outliers(rows: int, *, seed: int) -> torch.Tensor:
    """Inputs with one channel fifty times the others, as encoders have them."""
    x = torch.randn(2, rows, 64, generator=torch.Generator().manual_seed(seed))
    x[..., 3] *= 50
    return x


@pytest.mark.parametrize(
    "build",
    [
        Attention,
        lambda: Intermediate(nn.GELU()),
        lambda: Intermediate(nn.ReLU()),
        lambda: Intermediate(nn.GELU("tanh")),
    ],
    ids=["siblings", "gelu", "relu", "gelu tanh"],
)
@torch.inference_mode()
def test_outputs_stay_close_to_float32_beside_an_outlier(build: type[nn.Module]) -> None:
    torch.manual_seed(0)
    module = build().eval()
    sample, x = with_outliers(200, seed=1), with_outliers(7, seed=2)
    expected = module(x)

    quantise_linears(module, read_samples=lambda: module(sample))
    found = module(x)

    assert found.shape == expected.shape
    assert nn.functional.cosine_similarity(found.flatten(), expected.flatten(), dim=0) > 0.999
    assert not any(type(layer) is nn.Linear for layer in module.modules())


@torch.inference_mode()
def test_siblings_given_another_input_answer_for_that_one() -> None:
    torch.manual_seed(0)
    module = Attention().eval()
    sample, x = with_outliers(200, seed=1), with_outliers(5, seed=2)
    quantise_linears(module, read_samples=lambda: module(sample))
    alone = module.key(x.clone())

    module.query(with_outliers(5, seed=3))

    torch.testing.assert_close(module.key(x), alone)


@torch.inference_mode()
def test_a_layer_the_samples_do_not_reach_is_left_alone() -> None:
    module = nn.ModuleDict({"read": nn.Linear(8, 8), "unread": nn.Linear(8, 8)})

    replaced = quantise_linears(module, read_samples=lambda: module["read"](torch.randn(4, 8)))

    assert replaced == 1
    assert type(module["unread"]) is nn.Linear


def test_vectors_keep_their_direction_and_the_revision_tells_them_apart(tmp_path: Path) -> None:
    build_tiny_model(tmp_path)
    plain = SentenceEncoder.load(str(tmp_path / "tiny"), device="cpu", dtype="float32")
    int8 = SentenceEncoder.load(str(tmp_path / "tiny"), device="cpu", dtype="int8")

    rows = int8.embed_documents(TEXTS)

    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    assert (rows * plain.embed_documents(TEXTS)).sum(axis=1).min() > 0.98
    assert int8.info.revision == f"{plain.info.revision}-int8"
    assert int8.embed_query(TEXTS[0]) @ rows[0] > 0.999
