"""What SECURITY.md says of the code as a whole, and no test of one part of it shows."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from app.server.model_loading import Foundation, loaded
from tests.described import openapi_document

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "ingestion", "retrieval", "generation")
CONNECTING = {"httpx", "httpcore", "smtplib", "requests", "aiohttp", "urllib3", "websockets"}
CONNECTS = {
    "app/access/openid.py",  # to the issuer of FOOTNOTE_OIDC_ISSUER
    "app/outbound/mail.py",  # to FOOTNOTE_SMTP_URL
    "app/outbound/model_servers.py",  # an administrator's test of a server
    "app/outbound/web_pages.py",  # where FOOTNOTE_WEB_PAGES is on
    "app/outbound/webhooks.py",  # to FOOTNOTE_…_WEBHOOK
    "generation/remote_server.py",  # to FOOTNOTE_REMOTE_URL
}
"""Modules of the server that open connections."""

CLIENTS = ("app/cli/", "app/client.py", "app/doctor/", "app/mcp/", "app/tuning/")
"""Commands that connect to a Footnote server, and training."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "node_modules" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """The first parts of the names of all modules that are imported, wherever."""
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_the_server_connects_from_these_modules_alone() -> None:
    found = {path for path, tree in trees() if imported(tree) & CONNECTING and not path.startswith(CLIENTS)}

    assert found == CONNECTS


def test_no_code_of_a_models_repository_runs() -> None:
    trusting = [
        path
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg == "trust_remote_code"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]

    assert trusting == []


@pytest.mark.parametrize("weights", sorted(ROOT.glob("*/*/*/*.safetensors")), ids=lambda path: path.parent.name)
def test_trained_weights_come_with_a_script_and_a_card(weights: Path) -> None:
    card = (weights.parent / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^`?make ([a-z-]+)", card, re.MULTILINE))

    assert targets, "the card says how they are made"
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def holds_numbers(schema: Any) -> bool:
    """Whether a part of a schema is a list of fractions."""
    if isinstance(schema, list):
        return any(map(holds_numbers, schema))
    if not isinstance(schema, dict):
        return False
    return schema.get("items") == {"type": "number"} or any(map(holds_numbers, schema.values()))


def test_no_route_but_that_of_embeddings_returns_a_vector() -> None:
    described = openapi_document()
    bodies = described["components"]["schemas"]

    assert {name for name, body in bodies.items() if holds_numbers(body)} == {"EmbeddingBody"}


def test_nothing_is_downloaded_while_serving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    seen: list[str | None] = []

    def first_step(_name: str) -> None:
        seen.append(os.environ.get("HF_HUB_OFFLINE"))
        raise InterruptedError

    with pytest.raises(InterruptedError), loaded(Mock(spec_set=Foundation), begin=first_step):
        pytest.fail("nothing was loaded")

    assert seen == ["1"]
