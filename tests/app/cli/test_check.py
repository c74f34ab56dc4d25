"""`footnote check` looks at models, rows and files, and `--repair` mends what can be made again."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.db.migration import upgrade
from app.db.session import Database
from app.documents.ports import new_object_name
from app.errors import Conflict, SetupError
from app.models.adapter import write_adapter_manifest
from app.models.catalog import ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT
from app.models.span_reader import write_reader_manifest
from tests.app.db.samples import Library
from tests.app.models.fetched import fetched


def test_before_the_first_start_the_database_is_empty_and_not_wrong(tmp_path: Path) -> None:
    environment = {"FOOTNOTE_DATA_DIR": str(tmp_path / "none"), "FOOTNOTE_MODELS_DIR": str(tmp_path), "COLUMNS": "400"}

    shown = CliRunner().invoke(cli, ["check"], env=environment).output

    (database,) = (line.split() for line in shown.splitlines() if line.startswith("database"))
    assert database[1:] == ["exists", "no"]
    assert "schema" not in shown


def test_a_damaged_adapter_is_wrong_and_a_sound_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fetched(SMOLLM2_135M_INSTRUCT, tmp_path / "models")
    adapter = tmp_path / "mine"
    adapter.mkdir()
    (tmp_path / "data").mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({}))
    (adapter / "adapter_model.safetensors").write_bytes(b"12345")
    write_adapter_manifest(adapter, name="law", base=SMOLLM2_135M_INSTRUCT, prompt_layout="1", licence="MIT")
    environment = {
        "FOOTNOTE_DATA_DIR": str(tmp_path / "data"),
        "FOOTNOTE_MODELS_DIR": str(tmp_path / "models"),
        "FOOTNOTE_EMBEDDER": "org/embedder",
        "FOOTNOTE_ADAPTER": str(adapter),
        "COLUMNS": "400",
    }

    sound = CliRunner().invoke(cli, ["check"], env=environment)
    (adapter / "adapter_model.safetensors").write_bytes(b"54321")
    damaged = CliRunner().invoke(cli, ["check"], env=environment)

    assert sound.exit_code == 0, sound.output
    assert "adapter law" in sound.output
    assert damaged.exit_code == 1
    assert "is damaged: its files are not those of its footnote-adapter.json" in damaged.output


def test_a_damaged_reader_is_wrong_and_a_sound_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fetched(ALL_MINILM_L6_V2, tmp_path / "embedders")
    reader = tmp_path / "mine"
    reader.mkdir()
    (tmp_path / "data").mkdir()
    (reader / "model.safetensors").write_bytes(b"12345")
    write_reader_manifest(reader, name="law", base=ALL_MINILM_L6_V2, licence="MIT", slope=1, bias=0, threshold=0.5)
    environment = {
        "FOOTNOTE_DATA_DIR": str(tmp_path / "data"),
        "FOOTNOTE_MODELS_DIR": str(tmp_path / "models"),
        "FOOTNOTE_EMBEDDER": str(tmp_path / "embedders" / ALL_MINILM_L6_V2.name),
        "FOOTNOTE_GENERATOR": "extractive",
        "FOOTNOTE_READER": str(reader),
        "COLUMNS": "400",
    }

    sound = CliRunner().invoke(cli, ["check"], env=environment)
    (reader / "model.safetensors").write_bytes(b"54321")
    damaged = CliRunner().invoke(cli, ["check"], env=environment)

    assert sound.exit_code == 0, sound.output
    assert "reader law" in sound.output
    assert damaged.exit_code == 1
    assert "is damaged: its files are not those of its footnote-reader.json" in damaged.output


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of an installation with one document and no original."""
    monkeypatch.chdir(tmp_path)
    fetched(ALL_MINILM_L6_V2, tmp_path / "embedders")
    (tmp_path / "data").mkdir()
    database = Database.open(f"sqlite:///{tmp_path / 'data' / 'footnote.db'}")
    upgrade(database)
    original = new_object_name()
    Library(database).index("forty ships", filename="a.txt", original=original)
    database.close()
    (tmp_path / "data" / "files").mkdir()
    (tmp_path / "data" / "files" / original).write_bytes(b"forty ships")
    return {
        "FOOTNOTE_DATA_DIR": str(tmp_path / "data"),
        "FOOTNOTE_MODELS_DIR": str(tmp_path / "models"),
        "FOOTNOTE_EMBEDDER": str(tmp_path / "embedders" / ALL_MINILM_L6_V2.name),
        "FOOTNOTE_GENERATOR": "extractive",
        "FOOTNOTE_READER": "none",
        "COLUMNS": "400",
    }


def change(environment: dict[str, str], statement: str) -> None:
    with closing(sqlite3.connect(Path(environment["FOOTNOTE_DATA_DIR"]) / "footnote.db")) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_repairable_mismatch_fails_the_check_until_it_is_repaired(environment: dict[str, str]) -> None:
    change(environment, "DELETE FROM chunk_fts_docsize")

    wrong = CliRunner().invoke(cli, ["check"], env=environment)
    mended = CliRunner().invoke(cli, ["check", "--repair"], env=environment)
    sound = CliRunner().invoke(cli, ["check"], env=environment)

    assert wrong.exit_code == 1, wrong.output
    assert "1 full-text rows and chunks do not match. `footnote check --repair` repairs that." in wrong.output
    assert mended.exit_code == 0, mended.output
    assert "Repaired." in mended.output
    assert sound.exit_code == 0, sound.output
    assert "1 document versions, 1 chunks" in sound.output


def test_what_only_a_person_can_decide_stays_wrong(environment: dict[str, str]) -> None:
    change(environment, "UPDATE document SET status = 'embedding'")

    wrong = CliRunner().invoke(cli, ["check", "--repair"], env=environment)

    assert wrong.exit_code == 1, wrong.output
    assert "1 documents wait for a job that no longer exists. Delete them or upload them again." in wrong.output


def test_a_backup_and_a_restore_from_the_command_line(environment: dict[str, str], tmp_path: Path) -> None:
    saved = CliRunner().invoke(cli, ["backup", "saved.tar.gz"], env=environment)
    again = CliRunner().invoke(cli, ["backup", "saved.tar.gz"], env=environment)
    restored = CliRunner().invoke(cli, ["restore", "saved.tar.gz", "--into", "elsewhere"], env=environment)
    remote = CliRunner().invoke(cli, ["--url", "http://server", "backup", "other.tar.gz"], env=environment)

    assert saved.exit_code == 0, saved.output
    assert "1 documents, 1 originals, 0 ledger rows." in saved.output
    assert isinstance(again.exception, Conflict)
    assert restored.exit_code == 0, restored.output
    assert (tmp_path / "elsewhere" / "footnote.db").is_file()
    assert isinstance(remote.exception, SetupError)
    assert not (tmp_path / "other.tar.gz").exists()
