"""app.evaluation.scratch and `footnote eval` refuse what they must not touch, before any model is loaded."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.errors import AppError, SetupError
from app.evaluation.scratch import claim
from app.settings import Settings
from tests.app.evaluation.small_set import write_set


def settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]  # pydantic checks them


def test_a_new_folder_is_claimed_and_one_of_the_same_settings_is_claimed_again(tmp_path: Path) -> None:
    claim(settings(), tmp_path / "new")
    claim(settings(log_level="debug"), tmp_path / "new")

    assert (tmp_path / "new" / "evaluation.json").exists()


def test_a_folder_with_documents_of_somebody_is_never_claimed(tmp_path: Path) -> None:
    (tmp_path / "footnote.db").write_text("precious")

    with pytest.raises(SetupError, match="holds something else"):
        claim(settings(), tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["footnote.db"]


def test_other_indexing_settings_are_refused_by_name(tmp_path: Path) -> None:
    claim(settings(), tmp_path / "kept")

    with pytest.raises(SetupError, match="indexed with chunk_tokens 256; name a new one"):
        claim(settings(chunk_tokens=128), tmp_path / "kept")


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_damaged_folder_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "evaluation.json").write_text(content)

    with pytest.raises(SetupError, match="damaged"):
        claim(settings(), tmp_path)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "nowhere: there is no such folder."),
        (["set", "--modes", "psychic"], "--modes takes hybrid, dense and lexical, separated by commas."),
        (["set", "--modes", " ,"], "--modes takes hybrid, dense and lexical, separated by commas."),
        (["set", "--compare", "none.json"], "none.json: the run to compare with cannot be opened."),
    ],
)
def test_the_command_refuses_in_one_sentence_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_set(tmp_path / "set")

    result = CliRunner().invoke(cli, ["eval", *arguments])

    assert isinstance(result.exception, AppError)
    assert str(result.exception) == complaint
    assert not (tmp_path / "evaluation").exists()
