"""app.models.folder knows what a setting means and what is on the machine."""

from pathlib import Path

import pytest

from app.errors import SetupError
from app.models.catalog import ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT, ModelTask
from app.models.folder import missing_message, resolve, status
from app.models.manifest import write_manifest


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    """A folder where only the default embedder is, as its manifest says."""
    folder = tmp_path / "models" / ALL_MINILM_L6_V2.name
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"12345")
    write_manifest(folder, ALL_MINILM_L6_V2, converted_by={})
    return tmp_path / "models"


def test_a_defaults_name_means_its_folder(models_dir: Path) -> None:
    assert resolve("all-MiniLM-L6-v2", models_dir=models_dir) == str(models_dir / "all-MiniLM-L6-v2")


def test_a_default_that_is_not_fetched_says_what_to_do(models_dir: Path) -> None:
    with pytest.raises(
        SetupError, match=r"SmolLM2-135M-Instruct is not on this machine yet\. Run `footnote models fetch`"
    ):
        resolve("SmolLM2-135M-Instruct", models_dir=models_dir)


def test_a_local_folder_means_itself(models_dir: Path, tmp_path: Path) -> None:
    assert resolve(str(tmp_path), models_dir=models_dir) == str(tmp_path)


@pytest.mark.parametrize("hub_id", ["org/model", "Qwen/Qwen3-4B-Instruct-2507", "gpt2", "a/b.c_d-e"])
def test_a_hugging_face_id_is_returned_as_it_is(models_dir: Path, hub_id: str) -> None:
    assert resolve(hub_id, models_dir=models_dir) == hub_id


@pytest.mark.parametrize("nonsense", ["", "/no/such/folder", "./missing", "a/b/c", "../up", "two words", "https://x/y"])
def test_anything_else_is_refused_with_the_three_choices(models_dir: Path, nonsense: str) -> None:
    with pytest.raises(SetupError, match=r"a default .* a local folder, or a Hugging Face id"):
        resolve(nonsense, models_dir=models_dir)


def test_status_tells_present_from_absent_and_sound_from_damaged(models_dir: Path) -> None:
    embedder, generator = status(models_dir)

    assert (embedder.name, embedder.kind, embedder.licence) == ("all-MiniLM-L6-v2", ModelTask.EMBEDDER, "Apache-2.0")
    assert (embedder.present, embedder.bytes, embedder.sound) == (True, 5, True)
    assert (generator.name, generator.present, generator.bytes, generator.sound) == (
        SMOLLM2_135M_INSTRUCT.name,
        False,
        0,
        None,
    )

    (models_dir / "all-MiniLM-L6-v2" / "model.safetensors").write_bytes(b"54321")

    assert status(models_dir)[0].sound is False
    assert status(models_dir, digests=False)[0].sound is True


def test_a_folder_without_a_manifest_is_present_but_not_sound(models_dir: Path) -> None:
    folder = models_dir / SMOLLM2_135M_INSTRUCT.name
    folder.mkdir()
    (folder / "something").write_bytes(b"123")

    found = status(models_dir)[1]

    assert (found.present, found.bytes, found.sound) == (True, 3, False)


def test_status_of_a_folder_that_does_not_exist_is_all_absent(tmp_path: Path) -> None:
    assert [found.present for found in status(tmp_path / "nowhere")] == [False, False]


def test_the_message_names_the_defaults() -> None:
    assert "all-MiniLM-L6-v2 or SmolLM2-135M-Instruct" in missing_message("?")
