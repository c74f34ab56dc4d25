"""Every response has the security headers that browsers obey."""

import base64
import hashlib
import re

import pytest

CSP = "content-security-policy"


@pytest.mark.parametrize("path", ["/healthz", "/v1/collections", "/v1/nothing", "/metrics", "/docs", "/openapi.json"])
def test_every_response_has_the_security_headers(client, path):
    headers = client.get(path).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "default-src 'none'" in headers[CSP]
    assert "frame-ancestors 'none'" in headers[CSP]


def test_an_unauthenticated_refusal_has_the_security_headers_too(client):
    headers = client.get("/v1/collections", headers={"Authorization": "Bearer wrong"}).headers

    assert headers[CSP].startswith("default-src 'none'")
    assert headers["cache-control"] == "no-store"


def test_the_csp_of_an_api_response_allows_no_scripts(client):
    assert "script-src" not in client.get("/v1/collections").headers[CSP]


def test_answers_are_not_kept_by_caches(client):
    assert client.get("/v1/collections").headers["cache-control"] == "no-store"
    assert "cache-control" not in client.get("/healthz").headers


def test_the_documentation_runs_its_own_script_and_no_other(client):
    page = client.get("/docs")
    script = re.search(r"<script>(.*?)</script>", page.text, re.DOTALL)
    assert script is not None, "the page starts itself by a script of its own"
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    sources = re.search("script-src ([^;]*)", page.headers[CSP])

    assert sources is not None
    assert sources[1].split() == ["'self'", f"'sha256-{digest}'"]


def test_an_original_is_an_attachment_in_a_sandbox(client):
    document = client.post("/v1/documents", files={"file": ("x.html", b"<script>alert(1)</script><p>Text.</p>")}).json()
    response = client.get(f"/v1/documents/{document['id']}/file")

    assert response.headers[CSP] == "sandbox"
    assert response.headers["content-disposition"].startswith("attachment")
    assert response.headers["x-content-type-options"] == "nosniff"


def test_transport_security_is_promised_over_https_alone(client):
    assert "strict-transport-security" not in client.get("/healthz").headers
    client.base_url = "https://testserver"
    assert client.get("/healthz").headers["strict-transport-security"].startswith("max-age=")
