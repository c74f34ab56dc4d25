"""Mail is sent in plain text to one address; what fails is tried again, and a password goes over TLS alone."""

import socket
import ssl
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.errors import SetupError
from app.outbound.mail import Letter, Mailer, MailNotSent, one_line
from app.settings import Settings, load_settings
from tests.app.outbound.smtp_server import Mailbox, smtp_server
from tests.app.server.certificate import certificate_for_loopback

LETTER = Letter("ada@example.org", "Grüße", "Hello Ada,\n\n.a line with a dot\n\nhttps://x.example/#/invitation/t\n")


def settings(port: int, *, user: str = "", password: str | None = None) -> Settings:
    return Settings(
        _env_file=None,
        smtp_url=f"smtp://127.0.0.1:{port}",
        smtp_from="footnote@example.org",
        smtp_user=user,
        smtp_password=None if password is None else SecretStr(password),
    )


def mailer(box: Mailbox, pauses: list[float] | None = None) -> Mailer:
    return Mailer(settings(box.port), pause=(pauses if pauses is not None else []).append)


def test_a_letter_arrives_as_it_was_written() -> None:
    with smtp_server() as box:
        mailer(box).send(LETTER)

    (letter,) = box.letters
    assert (letter["To"], letter["From"], letter["Subject"]) == ("ada@example.org", "footnote@example.org", "Grüße")
    assert (letter.get_content_type(), letter["Auto-Submitted"]) == ("text/plain", "auto-generated")
    assert "https://x.example/#/invitation/t" in letter.get_content()
    assert {"mail FROM:<footnote@example.org>", "rcpt TO:<ada@example.org>"} <= {
        command.split(" size=")[0] for command in box.commands
    }


def test_what_may_pass_is_tried_again_and_what_is_final_is_not() -> None:
    pauses: list[float] = []
    with smtp_server() as box:
        box.refusals = ["451 later"]
        mailer(box, pauses).send(LETTER)
        assert (len(box.letters), box.connections, len(pauses)) == (1, 2, 1)

        box.refusals = ["550 nobody", "550 nobody"]
        with pytest.raises(MailNotSent):
            mailer(box, pauses).send(LETTER)
        assert (len(box.letters), box.connections, len(pauses)) == (1, 3, 1)

        box.refusals = ["451 later", "451 later"]
        with pytest.raises(MailNotSent):
            mailer(box, pauses).send(LETTER)
        assert (len(box.letters), box.connections) == (1, 5)


def test_a_server_that_is_not_there_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pauses: list[float] = []

    with pytest.raises(MailNotSent):
        Mailer(settings(port), pause=pauses.append).send(LETTER)
    assert len(pauses) == 1


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        patient = Mailer(settings(silent.getsockname()[1]), attempts=1, timeout_s=0.2)
        with pytest.raises(MailNotSent):
            patient.send(LETTER)


def test_a_password_is_not_sent_without_tls() -> None:
    with smtp_server() as box:
        signing_in = Mailer(settings(box.port, user="footnote", password="fn-secret-password"))
        with pytest.raises(MailNotSent):
            signing_in.send(LETTER)

    assert box.letters == []
    assert not [command for command in box.commands if command.startswith("AUTH")]


def test_a_password_is_sent_over_tls_to_a_server_whose_certificate_is_good(tmp_path: Path) -> None:
    certificate, key = certificate_for_loopback(tmp_path)
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with smtp_server(tls=offered) as box:
        signing_in = settings(box.port, user="footnote", password="fn-secret-password")
        Mailer(signing_in, tls=trusting).send(LETTER)
        assert len(box.letters) == 1
        assert [command for command in box.commands if command.startswith("AUTH")]

        box.commands.clear()
        with pytest.raises(MailNotSent):
            Mailer(signing_in, attempts=1).send(LETTER)
        assert not [command for command in box.commands if command.startswith("AUTH")]


def test_names_can_add_no_header() -> None:
    hostile = Letter("ada@example.org", "Hi\r\nBcc: eve@example.org\r\n\r\nbody", "text")
    with smtp_server() as box:
        mailer(box).send(hostile)

    (letter,) = box.letters
    assert letter["Bcc"] is None
    assert letter["Subject"] == "Hi Bcc: eve@example.org body"
    assert [command for command in box.commands if command.startswith("rcpt")] == ["rcpt TO:<ada@example.org>"]
    assert one_line("a\u2028b\0c\td") == "a b c d"


@pytest.mark.parametrize("address", ["ada@example.org\nBcc: eve@example.org", "ada@example.org>", "ada"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with smtp_server() as box, pytest.raises((MailNotSent, ValueError)):
        mailer(box).send(Letter(address, "x", "x"))

    assert box.letters == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"smtp_url": "http://mail.example.org"}, "smtp://host:port"),
        ({"smtp_url": "smtp://"}, "smtp://host:port"),
        ({"smtp_url": "smtp://host:99999999"}, "smtp://host:port"),
        ({"smtp_url": "smtp://user:password@mail.example.org"}, "FOOTNOTE_SMTP_USER"),
        ({"smtp_url": "smtps://mail.example.org", "smtp_from": ""}, "FOOTNOTE_SMTP_FROM"),
        ({"smtp_url": "smtps://mail.example.org", "smtp_from": "a@b\nBcc: c@d"}, "FOOTNOTE_SMTP_FROM"),
        ({"smtp_url": "smtps://mail.example.org", "smtp_user": "x"}, "need each other"),
    ],
)
def test_settings_that_can_send_nothing_are_refused(fields: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=said) as refused:
        load_settings(**{"_env_file": None, "smtp_from": "footnote@example.org", **fields})
    assert "password@" not in str(refused.value)
