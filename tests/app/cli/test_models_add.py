"""`footnote models add` says licence, size and memory, and what to set; terms have to be accepted."""

import os
import subprocess
from pathlib import Path

from tests.app.models.hub_server import Hub
from tests.app.models.made_gguf import made_gguf
from tests.app.models.test_hub import NAME, WEIGHTS, hub
from tests.processes import footnote

__all__ = ["hub"]


def run(hub: Hub, folder: Path, *arguments: str, model: str = NAME) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: the hub's client reads its address once."""
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"HF_TOKEN", "HF_HUB_OFFLINE"}},
        "FOOTNOTE_MODELS_DIR": str(folder / "models"),
        "HF_ENDPOINT": hub.url,
        "COLUMNS": "400",
    }
    return subprocess.run(
        footnote("models", "add", model, *arguments),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_says_what_it_added_what_that_takes_and_what_to_set(hub: Hub, tmp_path: Path) -> None:
    said = run(hub, tmp_path).stdout

    assert f"{NAME}, commit 0123456789ab: licence apache-2.0, 0.0 GB." in said
    assert f"It is in {tmp_path / 'models' / 'someone--model-2b'}." in said
    assert "It takes about 1.1 GB of memory and fits: " in said
    assert f"To use it, set FOOTNOTE_GENERATOR={NAME}." in said
    assert (tmp_path / "models" / "someone--model-2b" / "model.safetensors").read_bytes() == WEIGHTS


def test_terms_have_to_be_accepted_before_anything_is_downloaded(hub: Hub, tmp_path: Path) -> None:
    hub.licence = "gemma"
    refused = run(hub, tmp_path)

    assert refused.returncode != 0
    assert f"{NAME} has the licence gemma" in refused.stderr + refused.stdout
    assert "Traceback" not in refused.stderr
    assert hub.sent == []
    assert "licence gemma" in run(hub, tmp_path, "--accept-terms").stdout
    assert (tmp_path / "models" / "someone--model-2b").is_dir()


def test_a_gguf_file_is_converted_and_said_to_be_what_it_is(hub: Hub, tmp_path: Path) -> None:
    said = run(hub, tmp_path, model=str(made_gguf(tmp_path / "tiny.gguf"))).stdout

    assert f"It is in {tmp_path / 'models' / 'local--tiny'}. Licence, as the file says: apache-2.0." in said
    assert "To use it, set FOOTNOTE_GENERATOR=local/tiny." in said
    assert hub.sent == []
