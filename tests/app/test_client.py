"""app.client raises a plain error for responses that are not what it asked for."""

import httpx
import pytest

from app.client import Client, Refused


def client_of(*answers: httpx.Response) -> tuple[Client, list[httpx.Request]]:
    """A client whose server gives these answers, and what it was sent."""
    left, sent = list(answers), list[httpx.Request]()

    def handle(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return left.pop(0)

    return Client(httpx.Client(transport=httpx.MockTransport(handle), base_url="http://there.test")), sent


def test_a_server_that_sends_elsewhere_is_no_answer() -> None:
    """As a proxy does that wants HTTPS: the address was given without it."""
    client, sent = client_of(httpx.Response(301, headers={"Location": "https://there.test/v1/documents"}))

    with pytest.raises(Refused, match=r"^The server answered 301, which leads to another address than was given\.$"):
        client.call("GET", "/v1/documents")
    assert len(sent) == 1, "the key is not sent to where a stranger points"


def test_a_server_that_says_no_more_than_a_status_is_told_by_it() -> None:
    client, _ = client_of(httpx.Response(502, text="<html>Bad gateway</html>"))

    with pytest.raises(Refused, match=r"^The server answered 502\.$") as refusal:
        client.call("GET", "/v1/documents")
    assert refusal.value.status == 502


@pytest.mark.parametrize("path", ["/v1/admin/keys/", "/v1/admin/keys/../users/ada", "/v1/documents/.", "/v1//retry"])
def test_a_path_that_leads_to_another_resource_is_not_asked_for(path: str) -> None:
    client, sent = client_of(httpx.Response(200, json={}))

    with pytest.raises(Refused, match="nothing with this id") as refusal:
        client.call("DELETE", path)
    assert (refusal.value.status, sent) == (404, [])
