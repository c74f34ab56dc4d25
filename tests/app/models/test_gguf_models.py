"""app.models.gguf_models: a GGUF file becomes a generator of the models' folder, once, and leaves nothing behind."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.errors import SetupError
from app.models.conversion import convert_in_subprocess
from app.models.folder import resolve
from app.models.gguf_models import add_gguf
from app.models.manifest import read_manifest
from generation.config import EngineConfig
from generation.tokenizer import ChatTokenizer
from generation.weights import load_model
from tests.app.models.made_gguf import END_ID, made_gguf

_NFC, _NFD = "é", "e\u0301"


class Convert:
    """Writes what a conversion would, and counts how often."""

    def __init__(self, *, architecture: str = "Qwen2ForCausalLM", error: Exception | None = None) -> None:
        self.calls = 0
        self._architecture, self._error = architecture, error

    def __call__(self, _file: Path, folder: Path) -> Mapping[str, str]:
        self.calls += 1
        (folder / "config.json").write_text(json.dumps({"architectures": [self._architecture]}))
        (folder / "model.safetensors").write_bytes(b"weights")
        if self._error is not None:
            raise self._error
        return {"gguf": "1"}


def test_a_file_is_converted_to_a_model_that_loads_with_the_tokenizer_of_its_family(tmp_path: Path) -> None:
    added = add_gguf(made_gguf(tmp_path / "Tiny 1.gguf"), models_dir=tmp_path / "models")

    assert (added.setting, added.licence) == ("local/Tiny-1", "apache-2.0")
    folder = resolve(added.setting, models_dir=tmp_path / "models")
    assert folder == str(added.folder)
    tokenizer = ChatTokenizer.load(folder)
    assert tokenizer.encode(_NFD) == tokenizer.encode(_NFC), "Qwen2's tokenizer composes characters"
    assert len(tokenizer.encode("12")) == 2
    assert tokenizer.decode(tokenizer.encode("ab 12\n\nx")) == "ab 12\n\nx"
    model = load_model(EngineConfig(model=folder, dtype="float32"))
    assert model.eos_ids == {END_ID}
    manifest = read_manifest(added.folder)
    assert manifest is not None
    assert (manifest.name, set(manifest.converted_by)) == (added.setting, {"transformers", "torch", "gguf"})


def test_a_file_is_converted_once_and_again_where_its_folder_is_damaged_or_it_is_another_file(tmp_path: Path) -> None:
    convert, file, models = Convert(), made_gguf(tmp_path / "tiny.gguf"), tmp_path / "models"
    (models / ".convert-local--tiny-killed").mkdir(parents=True)
    added = add_gguf(file, models_dir=models, convert=convert)
    assert add_gguf(file, models_dir=models, convert=convert) == added
    assert convert.calls == 1
    assert [path.name for path in models.iterdir() if path.is_dir()] == [added.folder.name]

    (added.folder / "model.safetensors").write_bytes(b"damage!")
    assert add_gguf(file, models_dir=models, convert=convert) == added
    assert (added.folder / "model.safetensors").read_bytes() == b"weights"

    made_gguf(file, licence=None)
    assert add_gguf(file, models_dir=models, convert=convert).licence == "unknown"
    assert convert.calls == 3


@pytest.mark.parametrize(
    ("convert", "reason"),
    [
        (Convert(error=SetupError("The model could not be converted: why.")), "could not be converted: why"),
        (Convert(architecture="BertModel"), "no language model that generates text"),
        (Convert(error=OSError(28, "No space left on device")), "cannot be added: no space left"),
    ],
)
def test_a_conversion_that_fails_leaves_nothing_and_keeps_what_was_there(
    convert: Convert, reason: str, tmp_path: Path
) -> None:
    file, models = made_gguf(tmp_path / "tiny.gguf"), tmp_path / "models"
    before = add_gguf(file, models_dir=models, convert=Convert())
    shutil.copy(file, tmp_path / "other.gguf")
    with pytest.raises(SetupError, match=reason):
        add_gguf(tmp_path / "other.gguf", models_dir=models, convert=convert)

    assert [path.name for path in models.iterdir() if path.is_dir()] == [before.folder.name]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [("none.gguf", None, "no such file"), ("page.gguf", b"<html>", "is no GGUF file"), ("empty.gguf", b"", "is no")],
)
def test_what_is_no_gguf_file_is_said(name: str, content: bytes | None, reason: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SetupError, match=reason):
        add_gguf(tmp_path / name, models_dir=tmp_path / "models", convert=Convert())


def test_a_disk_without_room_is_said_before_anything_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, file = Convert(), made_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=0))
    with pytest.raises(SetupError, match=r"may take .* GB when it is converted"):
        add_gguf(file, models_dir=tmp_path / "models", convert=convert)
    assert convert.calls == 0


def test_a_tokenizer_that_is_not_known_is_refused_by_its_name(tmp_path: Path) -> None:
    file = made_gguf(tmp_path / "tiny.gguf", splitter="llama-bpe")
    with pytest.raises(SetupError, match=r"'llama-bpe', only for qwen2, smollm. Put the file into a folder"):
        convert_in_subprocess(file, tmp_path / "out")
