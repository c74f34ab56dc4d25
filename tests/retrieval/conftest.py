"""The tiny embedder that tests of encoders share."""

from pathlib import Path

import pytest

from retrieval.encoder import SentenceEncoder
from tests.retrieval.encoder_folder import build_tiny_model


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("model")
    build_tiny_model(root)
    return root / "tiny"


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> SentenceEncoder:
    return SentenceEncoder.load(str(tiny_folder), device="cpu", dtype="float32")
