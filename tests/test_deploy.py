"""The files in docs/deploy and docker are accepted by the programs they configure."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.cli.catalogue import COMMANDS
from app.settings import Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "docs" / "deploy"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
SETTINGS = {f"FOOTNOTE_{name.upper()}" for name in Settings.model_fields}
OF_THE_COMMAND_LINE = {"FOOTNOTE_URL", "FOOTNOTE_KEY", "FOOTNOTE_MCP_KEY"}  # app/cli/main.py, app/cli/mcp.py
OF_COMPOSE_RUN = {"footnote"}  # `docker compose run footnote footnote …`: the service's name
OF_COMPOSE = {"FOOTNOTE_PUBLISH"}  # docker/compose.yaml
ENDING_SECONDS = 10  # to tell streams of their end, and to close


def accepted(*command: str | Path) -> str:
    """What a program says of a file it accepts."""
    program = str(command[0])
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout + done.stderr


def unit(name: str) -> dict[str, list[str]]:
    """Every assignment of a systemd unit; a setting may be assigned more than once."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / name).read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def environment() -> dict[str, str]:
    lines = (DEPLOY / "footnote.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def nginx_seconds(name: str) -> list[int]:
    """A directive's values, wherever it stands."""
    return [int(value) for value in re.findall(rf"\b{name} (\d+)s;", (DEPLOY / "nginx.conf").read_text())]


def links() -> Iterator[tuple[Path, str]]:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if not re.match(r"[a-z]+:", target):
                yield document, target


def anchors(document: Path) -> set[str]:
    """The fragments GitHub makes of headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_nginx_accepts_its_configuration_file(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    certificate, key = tmp_path / "fullchain.pem", tmp_path / "privkey.pem"
    accepted(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", "/CN=footnote.example.org", "-keyout", key, "-out", certificate),
    )
    ours = (DEPLOY / "nginx.conf").read_text()
    ours = ours.replace("/etc/ssl/footnote", str(tmp_path)).replace("/var/log/nginx", str(tmp_path))
    ours = re.sub(r"listen (\[::\]:)?(\d+)", r"listen unix:" + str(tmp_path) + r"/\2\1", ours)
    ours = re.sub(r"/(\d+)\[::\]:", r"/\1six", ours)  # ports below 1024 are root's; IPv6 is not everywhere
    (tmp_path / "footnote.conf").write_text(ours)
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}} http {{"
        + "".join(f"{name}_temp_path {tmp_path}/{name};" for name in ("proxy", "client_body", "fastcgi", "uwsgi"))
        + f"scgi_temp_path {tmp_path}/scgi; include {tmp_path}/footnote.conf; }}"
    )

    assert "test is successful" in accepted("nginx", "-t", "-c", whole, "-e", tmp_path / "error.log")


def test_caddy_accepts_its_configuration_file() -> None:
    accepted("caddy", "validate", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile")


def test_prometheus_takes_its_file_with_the_alerts(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "prometheus.yml", tmp_path)
    shutil.copy(ROOT / "docs" / "grafana" / "alerts.yml", tmp_path / "footnote-alerts.yml")

    assert "rules found" in accepted("promtool", "check", "config", tmp_path / "prometheus.yml")


def test_alerts_and_dashboard_ask_for_the_job_that_is_scraped() -> None:
    [job] = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    asked = (ROOT / "docs" / "grafana" / "alerts.yml").read_text()

    assert set(re.findall(r'job="(\w+)"', asked)) == {job["job_name"]}


@pytest.mark.parametrize("name", ["footnote.service", "footnote-backup.service", "footnote-backup.timer"])
def test_systemd_accepts_each_unit_file(name: str, tmp_path: Path) -> None:
    program = tmp_path / "footnote"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for each in DEPLOY.glob("footnote*.*"):  # the timer names its service
        (tmp_path / each.name).write_text(each.read_text().replace("/opt/footnote/.venv/bin/footnote", str(program)))

    assert accepted("systemd-analyze", "verify", tmp_path / name) == ""


def test_the_services_exposure_is_small() -> None:
    said = accepted("systemd-analyze", "security", "--offline=true", "--threshold=20", DEPLOY / "footnote.service")

    assert "Overall exposure level" in said


def test_the_unit_leaves_time_to_drain_and_runs_what_the_settings_say() -> None:
    service, given = unit("footnote.service"), environment()
    drain = int(given.get("FOOTNOTE_DRAIN_S", Settings.model_fields["drain_s"].default))

    assert service["Type"] == ["notify"]
    assert int(service["TimeoutStopSec"][0]) >= drain + ENDING_SECONDS
    assert service["KillMode"] == ["mixed"], "parsers and engine outlive the signal while the server drains"
    assert service["LimitCORE"] == ["0"]
    [folder] = service["StateDirectory"]
    assert given["FOOTNOTE_DATA_DIR"] == f"/var/lib/{folder}", "the one folder that ProtectSystem leaves writable"
    [memory] = service["MemoryMax"]
    assert int(given["FOOTNOTE_KV_CACHE_MB"]) < int(memory.removesuffix("G")) * 1024


def test_the_settings_file_is_valid() -> None:
    assert set(environment()) <= SETTINGS

    Settings.model_validate({name.removeprefix("FOOTNOTE_").lower(): value for name, value in environment().items()})


def test_nginx_outlasts_an_answer_and_lets_go_of_connections_before_footnote_does() -> None:
    fields = Settings.model_fields
    [read] = nginx_seconds("proxy_read_timeout")
    [idle] = nginx_seconds("keepalive_timeout")
    text = (DEPLOY / "nginx.conf").read_text()

    assert read > fields["answer_deadline_s"].default
    assert idle < fields["keep_alive_s"].default
    assert "proxy_buffering off;" in text
    [largest] = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(largest) > fields["max_upload_mb"].default
    assert "X-Forwarded-For $remote_addr;" in text, "a client's own word would be believed"


def test_both_proxies_keep_metrics_and_health_inside() -> None:
    [denied] = re.findall(r"location ~ \^/\(([\w|]+)\)", (DEPLOY / "nginx.conf").read_text())
    [paths] = re.findall(r"@inside path (.+)", (DEPLOY / "Caddyfile").read_text())

    assert set(denied.split("|")) == {"metrics", "readyz", "healthz"}
    assert {path.strip("/") for path in paths.split()} == {"metrics", "readyz", "healthz"}


def test_caddy_outlasts_an_answer_and_holds_nothing_back() -> None:
    text = (DEPLOY / "Caddyfile").read_text()
    [waits] = re.findall(r"response_header_timeout (\d+)s", text)

    assert int(waits) > Settings.model_fields["answer_deadline_s"].default
    assert "flush_interval -1" in text
    assert "encode" not in text, "compression would hold a stream's events back"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_setting_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"\bFOOTNOTE_[A-Z0-9_]*[A-Z0-9]\b", document.read_text()))

    assert named <= SETTINGS | OF_THE_COMMAND_LINE | OF_COMPOSE


@pytest.mark.parametrize("path", sorted(DEPLOY.iterdir()), ids=lambda path: path.name)
def test_every_setting_a_deployed_file_names_exists(path: Path) -> None:
    assert set(re.findall(r"\bFOOTNOTE_[A-Z0-9_]+\b", path.read_text())) <= SETTINGS


def test_every_link_between_documents_leads_somewhere() -> None:
    lost = []
    for document, link in links():
        name, _, fragment = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (fragment and target.suffix == ".md" and fragment not in anchors(target)):
            lost.append(f"{document.name}: {link}")

    assert lost == []


def test_every_deployed_file_is_named_in_the_guide() -> None:
    guide = (ROOT / "docs" / "OPERATIONS.md").read_text()

    assert [path.name for path in DEPLOY.iterdir() if f"deploy/{path.name}" not in guide] == []


def test_every_command_in_the_guide_exists() -> None:
    """`footnote WORD` in a block of shell or between backticks, or `fn WORD`, is a command."""
    guide = (ROOT / "docs" / "OPERATIONS.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", guide, flags=re.DOTALL)
    prose = re.sub(r"```.*?```", "", guide, flags=re.DOTALL)
    code = "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", prose)])
    named = set(re.findall(r"(?:^|(?<!-[gou])[ ;|/(])(?:footnote|fn) ([a-z][a-z-]+)", code, flags=re.MULTILINE))

    assert len(named) > 10
    assert named <= set(COMMANDS) | OF_COMPOSE_RUN
