"""The Dockerfile and the compose file follow our rules, checked by reading them, without Docker."""

import importlib.util
import json
import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatch
from ipaddress import ip_address, ip_network
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).parents[1]
ENDING_SECONDS = 10  # to tell streams of their end, and to close
TARGETS = ("cpu", "cuda")


@dataclass(frozen=True)
class Stage:
    """One FROM and its instructions, as (KEYWORD, arguments)."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)


def base_image() -> str:
    """The image that both builds and what runs start from, unless a build argument names another."""
    text = (ROOT / "docker" / "Dockerfile").read_text()
    [image] = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", text, re.MULTILINE)
    return str(image)


def read_stages() -> dict[str, Stage]:
    text = (ROOT / "docker" / "Dockerfile").read_text().replace("${PYTHON_IMAGE}", base_image())
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    stages: dict[str, Stage] = {}
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        keyword, _, arguments = line.strip().partition(" ")
        if keyword == "FROM":
            base, _, name = re.split(r"\s+", arguments.strip())
            stages[name] = Stage(name=name, base=base)
        elif stages:
            list(stages.values())[-1].instructions.append((keyword, arguments.strip()))
    return stages


def inherited(target: str) -> list[tuple[str, str]]:
    """A target's instructions with those of the stages it starts from, outermost first."""
    stages, chain = read_stages(), []
    while target in stages:
        chain.append(stages[target])
        target = stages[target].base
    return [instruction for stage in reversed(chain) for instruction in stage.instructions]


def last(target: str, keyword: str) -> str:
    return [arguments for found, arguments in inherited(target) if found == keyword][-1]


def environment(target: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for found, line in inherited(target) if found == "ENV" for pair in shlex.split(line))


def copies() -> list[tuple[str, list[str]]]:
    """Every COPY: the stage it copies from ('' is the build context) and its sources."""
    found = []
    for stage in read_stages().values():
        for keyword, arguments in stage.instructions:
            if keyword == "COPY":
                words = shlex.split(arguments)
                origin = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
                found.append((origin, words[:-1]))
    return found


def check_names() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_names", ROOT / "docker" / "check_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Compose(yaml.SafeLoader):  # type: ignore[misc]  # as above
    """YAML with Compose's own tag for "not what the file below says"."""


Compose.add_constructor("!reset", lambda loader, node: loader.construct_sequence(node))


def compose(name: str = "compose.yaml") -> dict[str, Any]:
    content: dict[str, Any] = yaml.load((ROOT / "docker" / name).read_text(), Loader=Compose)
    return content


def test_both_targets_exist_and_start_from_pinned_images() -> None:
    stages = read_stages()

    assert set(TARGETS) <= set(stages)
    outside = {stage.base for stage in stages.values()} - set(stages)
    assert outside == {"python:3.11-slim-bookworm"}


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_serves_as_nobody_special_with_a_health_check(target: str) -> None:
    assert last(target, "USER") == "footnote"
    assert last(target, "EXPOSE") == "8000"
    assert last(target, "VOLUME") == "/data"
    assert json.loads(last(target, "CMD"))[:4] == ["footnote", "serve", "--host", "0.0.0.0"]
    assert "/healthz" in last(target, "HEALTHCHECK")
    assert environment(target)["FOOTNOTE_DATA_DIR"] == "/data"
    assert environment(target)["FOOTNOTE_MODELS_DIR"] == "/models"


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_takes_its_own_build_with_models_and_the_name_check(target: str) -> None:
    origins = {shlex.split(line)[0].removeprefix("--from=") for found, line in inherited(target) if found == "COPY"}
    assert origins == {f"build-{target}"}
    commands = " && ".join(line for found, line in inherited(f"build-{target}") if found == "RUN")
    assert ("ARG", f"LOCKS={'gpu' if target == 'cuda' else 'cpu'}") in inherited(f"build-{target}")
    assert "FOOTNOTE_MODELS_DIR=/models footnote models fetch" in commands
    assert "python docker/check_names.py" in commands


@pytest.mark.parametrize("target", TARGETS)
def test_every_package_but_torch_without_cuda_is_installed_by_its_hash(target: str) -> None:
    commands = "\n".join(line for found, line in inherited(f"build-{target}") if found == "RUN")
    installs = [" ".join(command.split()) for command in re.findall(r"pip install ([^&\n]*)", commands)]

    ours = "--no-deps --no-build-isolation --no-index ."
    others = [command for command in installs if not command.startswith("--require-hashes --no-deps ")]
    torch = '--no-deps --index-url "$TORCH_INDEX_URL" "$(grep \'^torch==\' constraints.txt)"'
    assert len(installs) - len(others) == 2, "what builds Footnote, and what it needs"
    assert others == ([torch, ours] if target == "cpu" else [ours])


def test_the_image_for_gpus_brings_the_compiler_that_triton_needs_and_the_other_does_not() -> None:
    commands = {target: " && ".join(line for found, line in inherited(target) if found == "RUN") for target in TARGETS}

    assert "apt-get install -y --no-install-recommends gcc libc6-dev" in commands["cuda"]
    assert "apt-get" not in commands["cpu"]


def test_health_checks_parse_as_python() -> None:
    arguments = last("cpu", "HEALTHCHECK")
    command = json.loads(arguments[arguments.index("[") :])
    compile(command[2], "healthcheck", "exec")

    assert compose()["services"]["footnote"]["healthcheck"]["test"] == ["CMD", *command]


def test_every_copied_source_exists_and_is_sent_to_the_builder() -> None:
    stages = read_stages()
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    sent = [line[1:] for line in ignore if line.startswith("!")]

    for origin, sources in copies():
        assert origin == "" or origin in stages
        for source in sources if not origin else []:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, pattern) for pattern in sent), source


def test_only_public_indexes_are_named_and_no_secret_is_an_argument() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text()

    assert set(re.findall(r"https?://([^/\s\"':]+)", text)) == {"download.pytorch.org", "127.0.0.1"}
    assert not re.search(r"(?i)^(ARG|ENV).*(token|password|secret(?!s/pip))", text, flags=re.MULTILINE)


def test_compose_runs_one_service_on_a_volume_and_keeps_the_gpu_for_its_profile() -> None:
    services = compose()["services"]

    assert [name for name, service in services.items() if "profiles" not in service] == ["footnote"]
    assert services["footnote-cuda"]["profiles"] == ["cuda"]
    for name, target in (("footnote", "cpu"), ("footnote-cuda", "cuda")):
        service = services[name]
        assert service["build"] == {"context": "..", "dockerfile": "docker/Dockerfile", "target": target}
        assert service["volumes"] == ["data:/data"]
        assert service["ports"] == ["${FOOTNOTE_PUBLISH:-127.0.0.1:8000}:8000"]
        assert service["env_file"] == [{"path": "../.env", "required": False}]
    devices = services["footnote-cuda"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]
    assert set(compose()["volumes"]) == {"data"}


@pytest.mark.parametrize("name", ["footnote", "footnote-cuda"])
def test_a_container_has_time_to_drain_and_little_it_could_change(name: str) -> None:
    service = compose()["services"][name]
    drain = int(Settings.model_fields["drain_s"].default)

    assert int(service["stop_grace_period"].removesuffix("s")) >= drain + ENDING_SECONDS
    assert last("cpu", "STOPSIGNAL") == "SIGTERM"
    assert service["init"] is True, "signals reach the server through a first process that reaps"
    assert service["read_only"] is True
    assert [mount.split(":")[0] for mount in service["tmpfs"]] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_behind_the_proxy_footnote_has_no_port_of_its_own_and_believes_the_proxy_alone() -> None:
    overlay = compose("compose.proxy.yaml")
    footnote, caddy = overlay["services"]["footnote"], overlay["services"]["caddy"]
    address = caddy["networks"]["edge"]["ipv4_address"]

    assert footnote["ports"] == []
    assert footnote["environment"]["FOOTNOTE_FORWARDED_ALLOW_IPS"] == address
    [subnet] = overlay["networks"]["edge"]["ipam"]["config"]
    assert ip_address(address) in ip_network(subnet["subnet"])
    assert caddy["environment"]["UPSTREAM"] == "footnote:8000"
    assert overlay["services"]["prometheus"]["ports"] == ["127.0.0.1:9090:9090"]
    assert set(footnote["environment"]) <= {f"FOOTNOTE_{name.upper()}" for name in Settings.model_fields}


def test_the_proxys_services_are_pinned_unprivileged_and_find_their_files_and_volumes() -> None:
    overlay = compose("compose.proxy.yaml")

    for name in ("caddy", "prometheus"):
        service = overlay["services"][name]
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+[\w.-]*", service["image"]), "an image without a version"
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        for source in (volume.split(":")[0] for volume in service["volumes"]):
            known = source in overlay["volumes"] if "/" not in source else (ROOT / "docker" / source).is_file()
            assert known, source


def test_prometheus_in_compose_is_the_one_of_the_guide_with_another_address() -> None:
    inside = (ROOT / "docker" / "prometheus.yml").read_text().replace("footnote:8000", "127.0.0.1:8000")

    assert yaml.safe_load(inside) == yaml.safe_load((ROOT / "docs" / "deploy" / "prometheus.yml").read_text())


def test_a_recipe_follows_hadolints_rules_that_matter_here() -> None:
    """DL3000 (absolute workdir), DL3002 (last user), DL3006 and DL3007 (pinned bases), DL3020 (COPY), DL3025 (JSON)."""
    for stage in read_stages().values():
        assert stage.base in read_stages() or re.search(r":(?!latest)\S+$", stage.base)
        for keyword, arguments in stage.instructions:
            assert keyword != "ADD"
            if keyword in {"CMD", "ENTRYPOINT"}:
                json.loads(arguments)
            if keyword == "WORKDIR":
                assert arguments.startswith("/")
            if keyword == "RUN":
                assert not re.search(r"\bsudo\b|curl [^|]*\| *(ba)?sh", arguments)


def test_a_name_somebody_else_ships_too_stops_the_build() -> None:
    script = check_names()
    ours = {name: [script.DISTRIBUTION] for name in script.NAMES}

    assert script.clashes(ours) == []
    assert script.clashes({**ours, "app": [script.DISTRIBUTION] * 2}) == []
    assert script.clashes({**ours, "app": ["another", script.DISTRIBUTION]}) == [
        "The import name 'app' belongs to another and footnote-rag, not to footnote-rag alone."
    ]
    assert script.clashes({**ours, "migrations": []}) == [
        "The import name 'migrations' belongs to nobody, not to footnote-rag alone."
    ]
