"""app.models.candidate_judge chooses the judge whose base is on this machine, and no other."""

from pathlib import Path
from typing import Any

import pytest

from app.errors import SetupError
from app.models.candidate_judge import JudgeConfig, configured_judge, judge_status, write_judge_manifest
from app.models.catalog import ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT
from app.settings import Settings
from tests.app.models.fetched import fetched


def described(folder: Path, *, base: object = SMOLLM2_135M_INSTRUCT) -> Path:
    """Weights that compute nothing, with their manifest."""
    folder.mkdir(parents=True)
    (folder / "judge.safetensors").write_bytes(b"12345")
    write_judge_manifest(folder, name=folder.name, base=base, licence="MIT")  # type: ignore[arg-type]
    return folder


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    return described(tmp_path / "retrieval" / "judge-135m")


@pytest.fixture
def base(tmp_path: Path) -> str:
    return fetched(SMOLLM2_135M_INSTRUCT, tmp_path / "models")


def configured(tmp_path: Path, shipped: Path, **chosen: Any) -> JudgeConfig | None:
    return configured_judge(Settings(_env_file=None, models_dir=tmp_path / "models", **chosen), shipped=shipped)


@pytest.mark.parametrize("generator", ["SmolLM2-135M-Instruct", "extractive", "org/model"])
def test_the_shipped_judge_is_chosen_where_its_base_is_whichever_model_answers(
    tmp_path: Path, shipped: Path, base: str, generator: str
) -> None:
    assert configured(tmp_path, shipped, generator=generator) == JudgeConfig(
        folder=str(shipped), base_folder=base, name="judge-135m"
    )


def test_without_its_base_there_is_none(tmp_path: Path, shipped: Path) -> None:
    assert configured(tmp_path, shipped) is None


def test_a_base_with_other_weights_gets_none(tmp_path: Path, shipped: Path, base: str) -> None:
    manifest = Path(base) / "footnote-model.json"
    manifest.write_text(manifest.read_text().replace(SMOLLM2_135M_INSTRUCT.weights.sha256, "0" * 64))

    assert configured(tmp_path, shipped) is None


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize("chosen", [{"judge": "none"}, {"reader": "none"}])
def test_none_is_chosen_where_it_is_off_or_nothing_reads(tmp_path: Path, shipped: Path, chosen: dict[str, str]) -> None:
    assert configured(tmp_path, shipped, **chosen) is None
    assert configured(tmp_path, tmp_path / "absent") is None


@pytest.mark.usefixtures("base")
def test_a_damaged_shipped_judge_is_refused(tmp_path: Path, shipped: Path) -> None:
    (shipped / "judge.safetensors").write_bytes(b"54321")

    with pytest.raises(SetupError, match=r"judge that comes with Footnote is damaged.*FOOTNOTE_JUDGE=none"):
        configured(tmp_path, shipped)
    assert [one.sound for one in judge_status("auto", shipped=shipped)] == [False]


def test_a_judge_in_a_folder_is_chosen_by_its_path(tmp_path: Path, shipped: Path, base: str) -> None:
    own = described(tmp_path / "own")

    chosen = configured(tmp_path, shipped, judge=str(own))

    assert chosen == JudgeConfig(folder=str(own), base_folder=base, name="own")
    assert [(one.name, one.sound) for one in judge_status(str(own), shipped=shipped)] == [
        ("judge-135m", True),
        ("own", True),
    ]


@pytest.mark.usefixtures("base")
def test_a_folder_that_holds_no_judge_is_refused(tmp_path: Path, shipped: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    with pytest.raises(SetupError, match=r"FOOTNOTE_JUDGE is auto, none, or a folder with judge\.safetensors"):
        configured(tmp_path, shipped, judge=str(empty))


@pytest.mark.usefixtures("base")
def test_a_judge_of_another_model_is_refused(tmp_path: Path, shipped: Path) -> None:
    other = described(tmp_path / "other", base=ALL_MINILM_L6_V2)

    with pytest.raises(SetupError, match="was trained on all-MiniLM-L6-v2: set FOOTNOTE_JUDGE"):
        configured(tmp_path, shipped, judge=str(other))


def test_a_judge_in_a_folder_needs_its_base(tmp_path: Path, shipped: Path) -> None:
    own = described(tmp_path / "own")

    with pytest.raises(SetupError, match="SmolLM2-135M-Instruct is not on this machine yet"):
        configured(tmp_path, shipped, judge=str(own))


@pytest.mark.usefixtures("base")
def test_a_manifest_that_cannot_be_read_is_refused(tmp_path: Path, shipped: Path) -> None:
    own = described(tmp_path / "own")
    (own / "footnote-judge.json").write_text("{")

    with pytest.raises(SetupError, match=r"footnote-judge\.json that cannot be read"):
        configured(tmp_path, shipped, judge=str(own))
    assert [one.sound for one in judge_status(str(own), shipped=tmp_path / "absent")] == [False]
