"""app.outbound.webhooks: alerts go to the public internet, or to hosts the installation names, and nowhere else."""

import hashlib
import hmac
import json
import socket

import pytest

from app.errors import InvalidRequest, SetupError
from app.outbound.webhooks import NotDelivered, Webhooks
from tests.app.outbound.test_web_pages import PUBLIC, Names, Wire, answer, redirect

INSIDE = "10.0.0.7"
NAMES = {"hooks.example": [[PUBLIC]], "inside.example": [[INSIDE]], "both.example": [[PUBLIC, INSIDE]]}


def webhooks(wire: Wire, hosts: str = "") -> Webhooks:
    return Webhooks(hosts=hosts, resolve=Names(dict(NAMES)), backend=wire)


def test_a_message_is_posted_as_json_to_the_resolved_address():
    wire = Wire(answer(b"thanks"))
    webhooks(wire).post("https://hooks.example/T0?x=1", {"percent": 80})
    head, _, body = bytes(wire.sent).partition(b"\r\n\r\n")

    assert (wire.connected, wire.secured) == ([(PUBLIC, 443)], ["hooks.example"])
    assert head.startswith(b"POST /T0?x=1 HTTP/1.1\r\n")
    assert b"Host: hooks.example" in head
    assert b"Content-Type: application/json" in head
    assert json.loads(body) == {"percent": 80}


def test_a_delivery_is_signed_with_its_time_where_there_is_a_secret():
    wire = Wire(answer(b""))
    hooks = Webhooks(resolve=Names(dict(NAMES)), backend=wire, secret="s" * 16, now=lambda: 1_900_000_000.9)
    hooks.post("https://hooks.example/", {"fee": "30 €"})
    head, _, body = bytes(wire.sent).partition(b"\r\n\r\n")
    headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])

    made = hmac.new(b"s" * 16, b"1900000000." + body, hashlib.sha256).hexdigest()
    assert headers[b"X-Footnote-Timestamp"] == b"1900000000"
    assert headers[b"X-Footnote-Signature"] == f"v1={made}".encode()


def test_a_delivery_without_a_secret_is_not_signed():
    wire = Wire(answer(b""))
    webhooks(wire).post("https://hooks.example/", {})

    assert b"X-Footnote" not in bytes(wire.sent)


@pytest.mark.parametrize(
    "url",
    [
        "http://inside.example/",
        "http://both.example/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://0x7f.1/",
    ],
)
def test_an_address_that_is_not_public_is_never_connected_to(url):
    wire = Wire(answer(b""))

    with pytest.raises(NotDelivered):
        webhooks(wire).post(url, {})
    assert wire.connected == []


@pytest.mark.parametrize(
    ("hosts", "url", "port"),
    [
        ("inside.example", "http://inside.example/", 80),
        ("other, inside.example", "https://inside.example/", 443),
        ("inside.example:9000", "http://inside.example:9000/x", 9000),
        ("INSIDE.example:9000", "http://inside.example:9000/x", 9000),
        (f"{INSIDE}:9000", f"http://{INSIDE}:9000/", 9000),
    ],
)
def test_a_host_the_installation_names_may_be_inside(hosts, url, port):
    wire = Wire(answer(b""))
    webhooks(wire, hosts).post(url, {})

    assert wire.connected == [(INSIDE, port)]


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        ("inside.example:9000", "http://inside.example/"),
        ("inside.example:9000", "http://inside.example:9001/"),
        ("inside.example", "http://inside.example:9000/"),
        ("inside.example", "http://sub.inside.example/"),
    ],
)
def test_naming_one_port_of_a_host_names_no_other(hosts, url):
    wire = Wire(answer(b""))

    with pytest.raises(NotDelivered):
        webhooks(wire, hosts).post(url, {})
    assert wire.connected == []


def test_a_redirect_is_not_followed_and_the_answer_is_not_shown():
    wire = Wire(redirect("http://inside.example/"), answer(b""))

    with pytest.raises(NotDelivered, match=r"^The receiver answered 302\.$"):
        webhooks(wire).post("http://hooks.example/", {})
    assert wire.connected == [(PUBLIC, 80)]


def test_a_receiver_that_is_broken_says_its_status_and_no_more():
    with pytest.raises(NotDelivered) as error:
        webhooks(Wire(answer(b"secret stack", status="500 Oh"))).post("http://hooks.example/", {})
    assert str(error.value) == "The receiver answered 500."


def test_a_receiver_that_takes_too_long_is_left():
    seconds = iter(range(100))
    slow = Webhooks(
        resolve=Names(dict(NAMES)), backend=Wire(answer(b"")), seconds=3, clock=lambda: float(next(seconds))
    )

    with pytest.raises(NotDelivered, match="too long"):
        slow.post("http://hooks.example/", {})


@pytest.mark.parametrize("url", ["ftp://hooks.example/", "hooks.example", "http://u:p@hooks.example/", "http://h:81/"])
def test_an_address_nobody_could_deliver_to_is_refused_at_once(url):
    with pytest.raises(InvalidRequest) as error:
        webhooks(Wire()).check(url)
    assert error.value.param == "webhook_url"


INSIDE_BY_THEMSELVES = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "00000000177.1",
    "127.0.0.1.",
    "127\u30020\u30020\u30021",  # the ideographic full stop divides names too
    "0",
    "10.0.0.7",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fd00:ec2::254]",
    "[64:ff9b::a9fe:a9fe]",
    "localhost",
    "LocalHost.",
    "a.localhost",
    "ip6-loopback",
    "4294967296",
    "%31%32%37.0.0.1",
]


@pytest.mark.parametrize("host", INSIDE_BY_THEMSELVES)
def test_an_address_inside_is_refused_when_it_is_given(host):
    with pytest.raises(InvalidRequest, match=r"not on the public internet.*FOOTNOTE_WEBHOOK_HOSTS") as error:
        Webhooks(resolve=Names(), backend=Wire()).check(f"http://{host}/hook")
    assert error.value.param == "webhook_url"


@pytest.mark.parametrize("host", INSIDE_BY_THEMSELVES)
def test_whatever_is_refused_when_it_is_given_would_not_be_delivered_to(host):
    names = Names({name: [["127.0.0.1"]] for name in ("localhost", "localhost.", "a.localhost", "ip6-loopback")})
    wire = Wire(answer(b""))

    with pytest.raises(NotDelivered):
        Webhooks(resolve=names, backend=wire).post(f"http://{host}/hook", {})
    assert wire.connected == []


@pytest.mark.parametrize(
    "host", [PUBLIC, "0x5db8d70e", "[2606:2800:21f:cb07::1]", "inside.example", "hooks.example.", "localhost.example"]
)
def test_an_address_that_may_be_public_is_taken(host):
    Webhooks(resolve=Names(), backend=Wire()).check(f"https://{host}/hook")


def test_no_name_is_looked_up_when_an_address_is_given(monkeypatch):
    names, read = Names(), socket.getaddrinfo

    def numbers_alone(host, port, *, flags=0):
        assert flags & socket.AI_NUMERICHOST, f"{host} would be looked up"
        return read(host, port, flags=flags)

    monkeypatch.setattr(socket, "getaddrinfo", numbers_alone)
    Webhooks(resolve=names, backend=Wire()).check("https://hooks.example/hook")

    assert names.asked == []


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        ("127.0.0.1:9000", "http://127.0.0.1:9000/hook"),
        ("localhost", "http://localhost/hook"),
        ("[::1]:9000", "http://[::1]:9000/hook"),
    ],
)
def test_an_address_inside_is_taken_where_the_installation_names_it(hosts, url):
    webhooks(Wire(), hosts).check(url)

    with pytest.raises(InvalidRequest):
        webhooks(Wire()).check(url)


@pytest.mark.parametrize("hosts", ["a b", "http://x", "x/path", "x:port"])
def test_hosts_that_cannot_be_read_stop_the_start(hosts):
    with pytest.raises(SetupError, match="FOOTNOTE_WEBHOOK_HOSTS"):
        Webhooks(hosts=hosts)
