""".env.example lists every setting with its default, and nothing else."""

import re
from pathlib import Path

import pytest

from app.errors import SetupError
from app.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
COMPUTED = {
    f"FOOTNOTE_{name}"
    for name in (
        "DATA_DIR",
        "MODELS_DIR",
        "DATABASE_URL",
        "ADMIN_KEY",
        "SECRET",
        "CONTEXT_WINDOW",
        "EMBEDDER_DIMENSIONS",
        "KV_CACHE_MB",
        "PARSERS",
        "REMOTE_API_KEY",
        "OIDC_CLIENT_SECRET",
        "WEBHOOK_SECRET",
        "SMTP_PASSWORD",
        "TLS_CERT",
        "TLS_KEY",
        "REQUESTS_PER_MINUTE",
        "TOKENS_PER_MINUTE",
        "CONCURRENT_REQUESTS",
        "TENANT_REQUESTS_PER_MINUTE",
        "TENANT_TOKENS_PER_MINUTE",
        "TENANT_CONCURRENT_REQUESTS",
    )
}


def documented() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    matches = [re.fullmatch(r"#(FOOTNOTE_\w+)=(.*)", line) for line in lines]
    return {match[1]: match[2] for match in matches if match}


def test_every_setting_is_documented_and_nothing_else():
    assert set(documented()) == {f"FOOTNOTE_{name.upper()}" for name in Settings.model_fields}


def test_every_documented_default_is_the_real_one():
    fields = {f"FOOTNOTE_{name.upper()}": field for name, field in Settings.model_fields.items()}
    for name, value in documented().items():
        if name not in COMPUTED:
            assert value == str(fields[name].default), name


def test_every_setting_says_what_it_is():
    assert all(field.description for field in Settings.model_fields.values())


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("FOOTNOTE_PORT", "seventy", "FOOTNOTE_PORT"),
        ("FOOTNOTE_DEVICE", "tpu", "FOOTNOTE_DEVICE"),
        ("FOOTNOTE_ADMIN_KEY", "short", "at least 16 characters"),
        ("FOOTNOTE_SECRET", "too-short-to-be-one", "at least 32 characters"),
        ("FOOTNOTE_MAX_WAITING", "-7", "FOOTNOTE_MAX_WAITING"),
        ("FOOTNOTE_REMOTE_URL", "ftp://models.example", "FOOTNOTE_REMOTE_URL must begin with http"),
    ],
)
def test_a_bad_value_is_a_sentence_that_names_the_variable_and_not_the_value(
    monkeypatch, tmp_path, name, value, sentence
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)

    with pytest.raises(SetupError, match=sentence) as failure:
        load_settings()

    assert value not in str(failure.value)


def test_a_dotenv_file_is_read_and_the_environment_wins(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("FOOTNOTE_PORT=8001\nFOOTNOTE_HOST=0.0.0.0\n")
    monkeypatch.setenv("FOOTNOTE_PORT", "8002")

    settings = load_settings()

    assert (settings.host, settings.port) == ("0.0.0.0", 8002)


def test_a_typo_in_dotenv_is_refused_by_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("FOOTNOTE_PROT=8001\n")

    with pytest.raises(SetupError, match="FOOTNOTE_PROT"):
        load_settings()


@pytest.mark.parametrize(
    ("together", "sentence"),
    [
        ({"remote_url": "http://gpu:8080"}, "FOOTNOTE_REMOTE_URL needs FOOTNOTE_REMOTE_MODEL"),
        ({"remote_model": "m"}, "need FOOTNOTE_REMOTE_URL"),
        ({"remote_api_key": "hidden"}, "need FOOTNOTE_REMOTE_URL"),
        ({"remote_api": "chat"}, "FOOTNOTE_REMOTE_API needs FOOTNOTE_REMOTE_URL"),
        ({"draft_model": "m", "speculation": False}, "FOOTNOTE_DRAFT_MODEL needs FOOTNOTE_SPECULATION"),
        ({"max_running": 600}, "FOOTNOTE_STEP_TOKENS must be at least FOOTNOTE_MAX_RUNNING"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_by_name(monkeypatch, tmp_path, together, sentence):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SetupError) as failure:
        load_settings(**together)

    assert sentence in str(failure.value)
    assert "hidden" not in str(failure.value)


def test_a_remote_server_and_its_model_go_together_and_the_key_stays_hidden(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    settings = load_settings(remote_url="http://gpu:8080/v1", remote_model="m", remote_api_key="hidden")

    assert settings.remote_api_key is not None
    assert settings.remote_api_key.get_secret_value() == "hidden"
    assert "hidden" not in repr(settings)
