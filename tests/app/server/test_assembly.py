"""app.server.assembly: real embedders replace each other in a running application, and a missing one is reported."""

import json
import shutil
from pathlib import Path

import pytest

from app.db.index_generations import GenerationStatus, IndexGeneration
from app.errors import SetupError
from app.server.assembly import recorded_settings
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from tests.app.api.conftest import ADMIN_KEY, client_of
from tests.app.server.embedder_swaps import wait_until
from tests.retrieval.encoder_folder import build_tiny_model

TEXT = b"acme revenue rose in spring"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two embedders of one architecture and other weights, with room for 64 tokens."""
    folders = []
    for seed in (1, 2):
        folder = tmp_path_factory.mktemp("model") / f"embedder-{seed}"
        build_tiny_model(folder, seed=seed)
        config = folder / "tiny" / "sentence_bert_config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "max_seq_length": 64}))
        folders.append((folder / "tiny").rename(folder.with_name(f"tiny-{seed}")))
    return folders[0], folders[1]


def settings_with(data_dir: Path, embedder: Path) -> Settings:
    return Settings(
        data_dir=data_dir,
        embedder=str(embedder),
        generator="extractive",
        reader="none",
        device="cpu",
        chunk_tokens=48,
        chunk_overlap=8,
        admin_key=ADMIN_KEY,
        _env_file=None,
    )


def upload(state: State) -> str:
    with client_of(state) as client:
        document_id = str(client.post("/v1/documents", files={"file": ("a.txt", TEXT)}).json()["id"])
        wait_until(lambda: client.get(f"/v1/documents/{document_id}").json()["status"] == "indexed")
    return document_id


def test_a_new_embedder_in_the_settings_takes_over_while_the_old_one_serves(tmp_path, models):
    first, second = models
    with build(settings_with(tmp_path / "data", first)) as state:
        document_id = upload(state)
    with build(settings_with(tmp_path / "data", second)) as state:
        embedder_swap = state.serving.embedder_swap
        assert embedder_swap is not None
        wait_until(lambda: embedder_swap.building is None)
        assert state.serving.models is not None
        assert state.serving.models.embedder.info.model == "tiny-2"
        with client_of(state) as client:
            found = client.post("/v1/search", json={"query": "revenue", "mode": "dense"})
            assert [hit["document_id"] for hit in found.json()["data"]] == [document_id]
            assert "footnote_index_vectors 1.0" in client.get("/metrics").text
            listed = client.get("/v1/admin/generations").json()["data"]
        assert [(one["model"], one["status"]) for one in listed] == [("tiny-2", "active"), ("tiny-1", "previous")]


def test_an_embedder_that_is_gone_while_its_vectors_are_needed_is_told_at_the_start(tmp_path, models):
    first = Path(shutil.copytree(models[0], tmp_path / "tiny-1"))
    with build(settings_with(tmp_path / "data", first)) as state:
        upload(state)
    shutil.rmtree(first)

    with (
        pytest.raises(SetupError, match=r"built with the embedder tiny-1 .* needed to search it"),
        build(settings_with(tmp_path / "data", models[1])),
    ):
        raise AssertionError("it does not start")
    shutil.copytree(models[1], first)
    with (
        pytest.raises(SetupError, match="another model has this name now"),
        build(settings_with(tmp_path / "data", models[1])),
    ):
        raise AssertionError("it does not start")


def test_the_recorded_settings_name_the_embedder_its_precision_and_its_dimensions(tmp_path):
    generation = IndexGeneration(
        id=1, model="m", revision="abc-int8", dim=128, source="org/m", status=GenerationStatus.ACTIVE,
        created_at=0.0, activated_at=None, replaced_at=None, rejected_at=None, purged_at=None,
    )  # fmt: skip
    asked = settings_with(tmp_path, tmp_path)

    found = recorded_settings(asked, generation)
    assert (found.embedder, found.embedder_dtype, found.embedder_dimensions) == ("org/m", "int8", 128)
