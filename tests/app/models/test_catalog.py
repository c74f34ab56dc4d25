"""The default models are pinned to the byte and are what the settings ask for."""

from pathlib import PurePosixPath

import pytest

from app.models.catalog import DEFAULT_MODELS, ModelTask, PackagedModel, find
from app.settings import DEFAULT_EMBEDDER, DEFAULT_GENERATOR


def test_the_settings_name_models_of_the_right_kind() -> None:
    embedder, generator = find(DEFAULT_EMBEDDER), find(DEFAULT_GENERATOR)

    assert embedder is not None
    assert embedder.kind is ModelTask.EMBEDDER
    assert generator is not None
    assert generator.kind is ModelTask.GENERATOR


def test_an_unknown_name_finds_nothing() -> None:
    assert find("gpt-17") is None


@pytest.mark.parametrize("model", DEFAULT_MODELS, ids=lambda model: model.name)
def test_every_file_is_pinned_and_stays_inside_its_folder(model: PackagedModel) -> None:
    paths = [file.path for file in model.files]

    assert len(set(paths)) == len(paths)
    for file in model.files:
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.bytes > 0
        assert not PurePosixPath(file.path).is_absolute()
        assert ".." not in PurePosixPath(file.path).parts


def test_only_a_gguf_file_needs_conversion() -> None:
    assert {model.name: model.needs_conversion for model in DEFAULT_MODELS} == {
        "all-MiniLM-L6-v2": False,
        "SmolLM2-135M-Instruct": True,
    }
