"""app.models.hub: the hub's own client downloads what is checked; everything else is refused with a reason."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import SetupError
from app.models.folder import resolve
from app.models.hub import download, look_up
from app.models.installed import generators
from app.models.manifest import read_manifest
from app.settings import load_settings
from tests.app.models.hub_server import COMMIT, Hub, serving_hub

NAME = "someone/model-2b"
WEIGHTS = bytes(range(256)) * 4096


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with serving_hub() as made:
        made.files = {
            "config.json": json.dumps({"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"}).encode(),
            "tokenizer.json": b"{}",
            "chat_template.jinja": b"{{ messages }}",
            "LICENSE": b"do what you want",
            "model.safetensors": WEIGHTS,
            "pytorch_model.bin": b"code",
            "consolidated.safetensors": WEIGHTS,
            "onnx/model.json": b"{}",
        }
        yield made


def added(hub: Hub, models_dir: Path) -> Path:
    return download(look_up(NAME, endpoint=hub.url), models_dir=models_dir, endpoint=hub.url)


def test_a_model_is_described_by_the_hub(hub: Hub) -> None:
    found = look_up(f"{NAME}@main", endpoint=hub.url)

    assert (found.id, found.commit, found.licence, found.has_terms) == (NAME, COMMIT, "apache-2.0", False)
    assert {file.name for file in found.files} == {
        *("config.json", "tokenizer.json", "chat_template.jinja", "LICENSE", "model.safetensors")
    }
    assert found.bytes == sum(len(hub.files[file.name]) for file in found.files)


@pytest.mark.parametrize(("licence", "named"), [("llama3.1", "llama3.1"), ("gemma", "gemma"), (None, "unknown")])
def test_a_licence_that_is_not_open_has_terms(licence: str | None, named: str, hub: Hub) -> None:
    hub.licence = licence
    found = look_up(NAME, endpoint=hub.url)
    assert (found.licence, found.has_terms) == (named, True)


def test_it_is_downloaded_without_what_can_run_code_and_is_a_generator_then(hub: Hub, tmp_path: Path) -> None:
    folder = added(hub, tmp_path)

    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "tokenizer.json", "chat_template.jinja", "LICENSE", "model.safetensors"),
        "footnote-model.json",
    }
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert stat.S_IMODE((folder / "model.safetensors").stat().st_mode) == 0o644
    manifest = read_manifest(folder)
    assert manifest is not None
    assert (manifest.name, manifest.version, manifest.licence) == (NAME, COMMIT, "apache-2.0")
    assert resolve(NAME, models_dir=tmp_path) == str(folder)
    found = generators(load_settings(models_dir=tmp_path, generator=NAME), hub=tmp_path / "none", gpu=lambda: None)
    assert [(one.setting, one.bytes, one.in_use) for one in found.installed] == [(NAME, len(WEIGHTS), True)]


def test_it_is_downloaded_once(hub: Hub, tmp_path: Path) -> None:
    folder = added(hub, tmp_path)
    sent = len(hub.sent)

    assert added(hub, tmp_path) == folder
    assert len(hub.sent) == sent
    (folder / "model.safetensors").write_bytes(b"damaged")
    added(hub, tmp_path)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS


def test_a_download_that_ended_early_keeps_the_files_that_it_has(hub: Hub, tmp_path: Path) -> None:
    hub.files["more.safetensors"] = hub.files.pop("model.safetensors")
    hub.files["first.safetensors"] = WEIGHTS
    hub.missing = {"more.safetensors"}
    with pytest.raises(SetupError, match="What was downloaded is kept"):
        added(hub, tmp_path)
    assert resolve(NAME, models_dir=tmp_path) == NAME
    hub.missing = set()
    folder = added(hub, tmp_path)

    assert (folder / "more.safetensors").read_bytes() == WEIGHTS
    assert [name for name, _ in hub.sent].count("first.safetensors") == 1


def test_a_file_that_breaks_off_is_asked_for_again(hub: Hub, tmp_path: Path) -> None:
    hub.cut = {"model.safetensors": 300_000}
    folder = added(hub, tmp_path)

    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert [name for name, _ in hub.sent].count("model.safetensors") == 2


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_is_not_what_the_hub_says_is_refused_and_deleted(name: str, hub: Hub, tmp_path: Path) -> None:
    hub.lies = {name: bytes(len(hub.files[name]))}
    with pytest.raises(SetupError, match=f"{name} of {NAME} is not what the hub says it is"):
        added(hub, tmp_path)
    assert resolve(NAME, models_dir=tmp_path) == NAME

    hub.lies = {}
    assert read_manifest(added(hub, tmp_path)) is not None


@pytest.mark.parametrize(
    ("without", "reason"),
    [("model.safetensors", "no weights as safetensors"), ("tokenizer.json", "no tokenizer.json")],
)
def test_what_cannot_be_used_is_refused_before_anything_is_downloaded(without: str, reason: str, hub: Hub) -> None:
    del hub.files[without]
    with pytest.raises(SetupError, match=reason):
        look_up(NAME, endpoint=hub.url)
    assert hub.sent == []


@pytest.mark.parametrize("config", [b"{}", b"[]", b"no JSON", b'{"architectures": ["BertModel"]}'])
def test_a_model_that_generates_no_text_is_refused_before_its_weights_are_downloaded(
    config: bytes, hub: Hub, tmp_path: Path
) -> None:
    hub.files["config.json"] = config
    with pytest.raises(SetupError, match="generates text"):
        added(hub, tmp_path)
    assert {name for name, _ in hub.sent} == {"config.json"}


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (404, "RepoNotFound", "The hub has no model"),
        (404, "RevisionNotFound", "no such revision"),
        (403, "GatedRepo", "accepted its terms"),
        (500, "", "cannot be reached"),
    ],
)
def test_what_the_hub_refuses_is_said(status: int, error: str, reason: str, hub: Hub) -> None:
    hub.status, hub.error = status, error
    with pytest.raises(SetupError, match=reason):
        look_up(NAME, endpoint=hub.url)


def test_a_hub_that_is_not_there_is_said() -> None:
    with pytest.raises(SetupError, match="cannot be reached"):
        look_up(NAME, endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("named", ["", "model", "../../etc", "a/b/c", "https://huggingface.co/a/b", "a b/c"])
def test_what_is_no_name_of_a_model_is_refused(named: str) -> None:
    with pytest.raises(SetupError, match="is no model of the hub"):
        look_up(named)


def test_a_disk_without_room_is_said_before_anything_is_downloaded(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = look_up(NAME, endpoint=hub.url)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(SetupError, match=r"takes 0\.0 GB, and the disk has 0\.0 GB left"):
        download(model, models_dir=tmp_path, endpoint=hub.url)
    assert hub.sent == []
