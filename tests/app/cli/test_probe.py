"""`footnote models list` and `footnote check` say how well the generator reads, as far as that is known."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.models import commands
from app.doctor.models import look_at_models
from app.doctor.report import Report
from app.errors import SetupError
from app.probing.results import probe_key, results_of
from app.settings import load_settings
from tests.app.probing.test_results import RESULT


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Variables for an installation whose generator is a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "generator").mkdir()
    found = {
        "FOOTNOTE_DATA_DIR": str(tmp_path / "data"),
        "FOOTNOTE_MODELS_DIR": str(tmp_path / "models"),
        "FOOTNOTE_GENERATOR": str(tmp_path / "generator"),
    }
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return found


def listed() -> str:
    result = CliRunner().invoke(commands, ["list"], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def checked() -> object:
    report = Report()
    look_at_models(report, load_settings())
    return report.sections["models"]["class"]


def test_a_model_that_was_not_measured_is_said_to_be_unknown(environment: dict[str, str]) -> None:
    assert "class not measured yet: quotes answer until `footnote models probe`" in listed()
    assert checked() == "not measured yet, quotes answer"


def test_what_was_measured_is_shown(environment: dict[str, str]) -> None:
    settings = load_settings()
    results_of(settings).keep(probe_key(settings), RESULT)

    assert "class writer, measured" in listed()
    assert "class writer. It reads 14 of 20 facts, joins 4 of 8" in str(checked())


def test_a_class_that_is_set_or_known_is_shown(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_MODEL_CLASS", "strong")
    assert "class strong" in listed()
    assert checked() == "strong"
    monkeypatch.delenv("FOOTNOTE_MODEL_CLASS")
    monkeypatch.delenv("FOOTNOTE_GENERATOR")
    assert "class quotes" in listed()


def test_a_generator_that_is_not_here_has_no_class(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTNOTE_GENERATOR", "/nowhere/at all")
    assert "class" not in listed()
    assert checked() == "unknown"


def test_without_a_language_model_there_is_nothing_to_measure(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTNOTE_GENERATOR", "extractive")
    with pytest.raises(SetupError, match="no language model to measure"):
        CliRunner().invoke(commands, ["probe"], catch_exceptions=False)
    assert "class" not in listed()
