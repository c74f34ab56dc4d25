"""app.probing.results: a result is found by what was measured, and a damaged one is none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.probing.reading import ModelReading, Share
from app.probing.results import ProbeResult, ProbeResults, probe_key
from app.settings import Settings, load_settings

RESULT = ProbeResult(
    model="m",
    measured_at=12.5,
    reading=ModelReading(
        reads=Share(14, 20), joins=Share(4, 8), forms=Share(1, 4), refuses=Share(4, 28), declines=Share(2, 8)
    ),
)


def test_what_is_kept_is_found(tmp_path: Path) -> None:
    results = ProbeResults(tmp_path / "data" / "probes")
    assert results.find("a") is None
    results.keep("a", RESULT)

    assert results.find("a") == RESULT
    assert results.find("b") is None
    assert [path.name for path in (tmp_path / "data" / "probes").iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    "written",
    ["", "{", "[]", "7", "null", '{"model": "m"}', '{"model": "m", "measured_at": "x", "reading": {}}',
     '{"model": "m", "measured_at": 1, "reading": {"reads": [1]}}',
     '{"model": "m", "measured_at": 1, "reading": {"other": [1, 2]}}',
     '{"model": "m", "measured_at": 1, "reading": {"reads": [1, 2]}}'],
)  # fmt: skip
def test_a_damaged_file_is_as_none_and_is_replaced(written: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(written)
    results = ProbeResults(tmp_path)
    assert results.find("a") is None
    results.keep("a", RESULT)
    assert results.find("a") == RESULT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text("{}")
    (made / "tokenizer.json").write_text("{}")
    (made / "model.safetensors").write_bytes(b"weights")
    return made


def settings_of(folder: Path, **changed: object) -> Settings:
    return load_settings(generator=str(folder), **changed)


def test_the_same_model_loaded_the_same_way_has_the_same_key(folder: Path) -> None:
    assert probe_key(settings_of(folder)) == probe_key(settings_of(folder, max_running=3))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "config.json").write_text('{"a": 1}'),
        lambda folder: (folder / "tokenizer.json").write_text('{"a": 1}'),
        lambda folder: (folder / "chat_template.jinja").write_text("{{ messages }}"),
        lambda folder: (folder / "model.safetensors").write_bytes(b"other weights"),
        lambda folder: (folder / "more.gguf").write_bytes(b"weights"),
    ],
)
def test_other_files_have_another_key(folder: Path, change: Callable[[Path], object]) -> None:
    before = probe_key(settings_of(folder))
    change(folder)

    assert probe_key(settings_of(folder)) != before


@pytest.mark.parametrize(
    "changed",
    [
        {"weights": "int8"},
        {"dtype": "float32"},
        {"device": "cuda"},
        {"remote_url": "http://gpu:8000/v1", "remote_model": "m"},
        {"remote_url": "http://gpu:8000/v1", "remote_model": "n"},
    ],
)
def test_loaded_another_way_it_has_another_key(folder: Path, changed: dict[str, str]) -> None:
    keys = {probe_key(settings_of(folder, **one)) for one in ({}, changed)}
    keys.add(probe_key(settings_of(folder, remote_url="http://gpu:8000/v1", remote_model="third")))

    assert len(keys) == 3


def test_a_server_that_is_sent_messages_needs_no_model_here() -> None:
    chat = {"remote_url": "http://gpu:8000/v1", "remote_model": "m", "remote_api": "chat"}
    keys = {
        probe_key(load_settings(generator="/no/such/folder", **chat)),
        probe_key(load_settings(generator="org/other", **chat)),
        probe_key(load_settings(generator="org/other", **{**chat, "remote_model": "n"})),
        probe_key(load_settings(generator="org/other", **{**chat, "remote_api": "completions"})),
    }
    assert len(keys) == 3


def test_a_model_in_no_folder_of_its_own_is_known_by_its_name() -> None:
    one, other = (probe_key(load_settings(generator=name)) for name in ("org/model-1b", "org/model-2b"))
    assert one != other
