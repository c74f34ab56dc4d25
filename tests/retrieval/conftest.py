"""The tiny embedder and the single thread that tests of models share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from retrieval.encoder import SentenceEncoder
from tests.retrieval.encoder_folder import build_tiny_model


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Sums come out the same, and tests beside it keep their core."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("model")
    build_tiny_model(root)
    return root / "tiny"


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(str(tiny_folder), device="cpu", dtype="float32")
