"""app.doctor reports the state of an installation without secrets, names or texts."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.db.session import Database
from app.doctor import machine
from app.doctor.examination import examine, examine_server
from app.doctor.machine import look_at_device, look_at_exposure, look_at_machine
from app.doctor.report import Finding, Level, Report, shown, tame
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Settlement, UsageStatus
from migrations.first_release import LAST_BEFORE
from tests.app.usage.samples import reservation

SECRET = "canary-in-a-secret"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data",
        models_dir=tmp_path / "models",
        admin_key=f"fn_{SECRET}",
        remote_api_key=SECRET,
        remote_url=f"http://user:{SECRET}@gpu.test/v1?key={SECRET}",
        remote_model="m",
        port=1,
        _env_file=None,
    )


@pytest.fixture
def state(settings: Settings) -> Iterator[State]:
    with build(settings, with_models=False) as state:
        yield state


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


def test_an_installation_in_use_is_looked_at_without_disturbing_it(state, settings):
    state.usage.ledger.reserve(reservation("req_1:1", tenant_id="default"))
    before = {path.name for path in settings.data_dir.iterdir()}

    report = examine(settings)

    state.usage.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))
    assert report.sections["database"]["schema"] == report.sections["database"]["schema_wanted"]
    assert report.sections["ledger"]["reserved"] == 1
    assert report.sections["reconciliation"]["failed"] == []
    assert {"admin-key-set", "no-price", "model-missing"} <= codes(report)
    assert {path.name for path in settings.data_dir.iterdir()} == before


def test_the_report_has_neither_secrets_nor_passwords_nor_names(state, settings):
    state.corpus.collections.create("default", f"a {SECRET} collection", metadata={})

    assert SECRET not in examine(settings).to_json()


def test_addresses_lose_their_users_and_queries_and_home_its_name():
    assert tame("postgresql+psycopg://me:pw@db.test:5432/notes?password=x") == "postgresql+psycopg://db.test:5432/notes"
    assert tame(f"{Path.home()}/notes") == "~/notes"
    assert shown(Settings(admin_key="fn_0123456789abcdef", _env_file=None))["admin_key"] == "set"


def test_examining_a_missing_installation_creates_no_files(settings):
    report = examine(settings)

    assert report.sections["database"] == {"exists": False}
    assert report.sections["server"] == {"address": "http://127.0.0.1:1", "answers": False}
    assert not settings.data_dir.exists()


def test_a_schema_of_a_newer_version_is_an_error(state, settings):
    database = Database.open(settings.resolved_database_url)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()

    report = examine(settings)

    assert "schema-newer" in codes(report)
    assert not report.sound


def test_a_schema_from_before_the_first_release_is_an_error_that_names_the_commit_to_install(state, settings):
    database = Database.open(settings.resolved_database_url)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0019'")
    database.close()

    report = examine(settings)

    assert [found.code for found in report.findings if LAST_BEFORE in found.remedy] == ["schema-too-old"]
    assert not report.sound


def test_listening_to_everybody_without_tls_is_found():
    report = Report()
    look_at_exposure(report, Settings(host="0.0.0.0", _env_file=None))

    assert "no-tls" in codes(report)


def test_a_data_dir_that_others_may_enter_is_found_and_left_as_it_is(settings):
    settings.data_dir.mkdir()
    (settings.data_dir / "footnote.db").touch(0o644)
    (settings.data_dir / "files").mkdir(0o700)
    settings.data_dir.chmod(0o755)
    report = Report()

    look_at_exposure(report, settings)

    (finding,) = [finding for finding in report.findings if finding.code == "data-dir-open"]
    assert finding.level is Level.WARNING
    assert finding.sentence == "Other users of this machine may enter the data dir and read footnote.db in it."
    assert settings.data_dir.stat().st_mode & 0o777 == 0o755


def test_a_data_dir_of_its_owner_alone_is_no_finding(settings):
    settings.data_dir.mkdir(0o700)
    (settings.data_dir / "footnote.db").touch(0o644)  # nobody else reaches it
    report = Report()

    look_at_exposure(report, settings)

    assert "data-dir-open" not in codes(report)


@pytest.mark.parametrize(
    ("ready", "date", "code"),
    [
        ({"ready": False, "reasons": ["engine: stopped"]}, None, "not-ready"),
        (
            {"ready": True, "reasons": [], "checks": {"engine": {"path": {"slower": ["No compiler."]}}}},
            None,
            "slow-path",
        ),
        ({"ready": True, "reasons": []}, "Sat, 01 Jan 2000 00:00:00 GMT", "clock-skew"),
    ],
)
def test_a_server_elsewhere_is_looked_at_by_what_it_shows(ready, date, code):
    def answer(request: httpx.Request) -> httpx.Response:
        headers = {"Date": date} if date else {}
        match request.url.path:
            case "/healthz":
                return httpx.Response(200, json={"version": "1"}, headers=headers)
            case "/readyz":
                return httpx.Response(200, json=ready)
        return httpx.Response(200, text='# HELP a b\nfootnote_a{k="v w"} 2.0\nfootnote_b_bucket{le="1"} 3\n')

    with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://there.test") as http:
        report = examine_server(http)

    assert code in codes(report)
    assert report.sections["server"]["metrics"] == {'footnote_a{k="v w"}': 2.0}


def test_a_server_that_does_not_answer_is_an_error():
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with httpx.Client(transport=httpx.MockTransport(refuse), base_url="http://there.test") as http:
        report = examine_server(http)

    assert "no-answer" in codes(report)


def test_a_report_with_an_error_alone_is_not_sound():
    assert Report(findings=[Finding(Level.WARNING, "w", "", "")]).sound
    assert not Report(findings=[Finding(Level.ERROR, "e", "", "")]).sound


def test_the_command_writes_json_and_a_zip_and_ends_with_the_verdict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = {"FOOTNOTE_DATA_DIR": str(tmp_path / "d"), "FOOTNOTE_MODELS_DIR": "m", "FOOTNOTE_PORT": "1"}

    result = CliRunner().invoke(cli, ["doctor", "--json", "--out", "doctor.zip"], env=environment)

    assert result.exit_code == 1  # there are no models
    assert json.loads(result.stdout)["sound"] is False
    with zipfile.ZipFile(tmp_path / "doctor.zip") as archive:
        assert json.loads(archive.read("doctor.json")) == json.loads(result.stdout)


TOO_OLD = "The NVIDIA driver 570.86.10 is too old for CUDA 13.0, which needs 580."
NO_COMPILER = "The GPU's kernels need a C compiler once, and there is none: install gcc and libc6-dev."


@pytest.mark.parametrize(
    ("device", "driver", "code"),
    [("cuda", None, "no-gpu"), ("auto", "570.86.10", "gpu-unused"), ("auto", None, None), ("cpu", "570.86.10", None)],
)
def test_a_gpu_that_torch_does_not_see_is_found_with_the_reason(device, driver, code, monkeypatch):
    monkeypatch.setattr(machine, "why_no_gpu", lambda: TOO_OLD)
    monkeypatch.setattr(machine, "driver_version", lambda: driver)
    report = Report()

    look_at_device(report, Settings(device=device, _env_file=None))

    assert codes(report) == ({code} if code else set())
    assert all(TOO_OLD in finding.sentence for finding in report.findings)


@pytest.mark.parametrize(("driver", "missing"), [("580.95.05", NO_COMPILER), ("580.95.05", None), (None, NO_COMPILER)])
def test_a_missing_compiler_matters_where_there_is_a_gpu(driver, missing, settings, monkeypatch):
    monkeypatch.setattr(machine, "driver_version", lambda: driver)
    monkeypatch.setattr(machine, "missing_compiler", lambda: missing)
    report = Report()

    look_at_machine(report, settings)

    assert ("no-compiler" in codes(report)) is (driver is not None and missing is not None)
    assert report.sections["machine"]["nvidia_driver"] == driver
    assert report.sections["machine"].get("compiler") == (None if driver is None else missing or "found")
