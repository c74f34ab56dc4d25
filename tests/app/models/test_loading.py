"""app.models.loading loads the span reader that belongs to the embedder, and none elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import SetupError
from app.models.catalog import ALL_MINILM_L6_V2
from app.models.loading import load_reader
from app.models.manifest import write_manifest
from app.models.span_reader import write_reader_manifest
from app.settings import Settings
from app.tuning.span_reader.training import trained_weights
from retrieval.errors import ReaderUnavailable
from retrieval.span_reader import save_reader
from tests.retrieval.reader_folder import build_base, trained


@pytest.fixture
def embedder(tmp_path: Path) -> Path:
    """A folder that says it is the default embedder, and is a tiny one."""
    folder = build_base(tmp_path / "embedder")
    write_manifest(folder, ALL_MINILM_L6_V2, converted_by={})
    return folder


@pytest.fixture
def reader(embedder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "reader"
    save_reader(trained_weights(trained(embedder)), folder)
    describe(folder)
    return folder


def describe(folder: Path) -> None:
    write_reader_manifest(
        folder, name="span", base=ALL_MINILM_L6_V2, licence="MIT", slope=0.1, bias=-0.3, threshold=0.35
    )


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Settings]:
    def make(*, embedder: Path | str, reader: Path | str) -> Settings:
        return Settings(
            _env_file=None,
            models_dir=tmp_path / "models",
            embedder=str(embedder),
            reader=str(reader),
            device="cpu",
            dtype="float32",
        )

    return make


def test_the_named_reader_is_loaded_over_the_embedder(
    configured: Callable[..., Settings], embedder: Path, reader: Path
) -> None:
    loaded = load_reader(configured(embedder=embedder, reader=reader))

    assert loaded is not None
    assert (loaded.model, loaded.threshold) == ("span", 0.35)
    (pointer,) = loaded.read("the revenue", ["acme revenue rose"])
    assert pointer is not None


def test_none_is_loaded_where_the_settings_say_so_or_the_embedder_is_no_base(
    configured: Callable[..., Settings], embedder: Path, reader: Path, tmp_path: Path
) -> None:
    foreign = build_base(tmp_path / "foreign")

    assert load_reader(configured(embedder=embedder, reader="none")) is None
    assert load_reader(configured(embedder=foreign, reader="auto")) is None
    assert load_reader(configured(embedder="org/embedder", reader="auto")) is None
    with pytest.raises(SetupError, match="was trained on all-MiniLM-L6-v2, and the embedder is foreign"):
        load_reader(configured(embedder=foreign, reader=reader))


def test_a_reader_that_its_manifest_describes_and_the_model_refuses_stops_the_start(
    configured: Callable[..., Settings], embedder: Path, tmp_path: Path
) -> None:
    wide = trained(build_base(tmp_path / "wide", hidden=32))
    save_reader(trained_weights(wide), tmp_path / "other")
    describe(tmp_path / "other")

    with pytest.raises(ReaderUnavailable, match="its weights do not fit"):
        load_reader(configured(embedder=embedder, reader=tmp_path / "other"))
