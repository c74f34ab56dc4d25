"""Sends plain text mail by SMTP (RFC 5321), for invitations and weekly summaries. Calls block.

In a request, run them in `OutboundThreads`.
"""

import smtplib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from urllib.parse import urlsplit

from app.settings.access import AccessSettings, is_mail_address
from app.telemetry.logs import logger

_TIMEOUT_S = 8.0  # of each step: connecting, and every reply
_ATTEMPTS = 2
_PAUSE_S = 1.0
_PERMANENT = 500  # reply codes from here on say that another attempt is pointless
_MOST_SUBJECT = 150  # characters


class MailNotSent(Exception):
    """The mail server could not be reached, refused the mail, or offers no TLS for the password."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A plain text mail to one address."""

    to: str
    subject: str
    text: str


class Mailer:
    """Sends mail by one server. Safe to use from any thread: each mail has a connection of its own.

    Example:
        >>> Mailer(load_settings(smtp_url="smtp://127.0.0.1:25", smtp_from="footnote@example.org")).send(
        ...     Letter("ada@example.org", "Hello", "Hello, Ada.")
        ... )
    """

    def __init__(
        self,
        settings: AccessSettings,
        *,
        attempts: int = _ATTEMPTS,
        timeout_s: float = _TIMEOUT_S,
        pause: Callable[[float], None] = time.sleep,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`settings` have a mail server; `tls` checks its certificate (None: by the system's authorities)."""
        parsed = urlsplit(settings.smtp_url)
        self._implicit_tls = parsed.scheme == "smtps"
        self._host = parsed.hostname or ""
        self._port = parsed.port or (465 if self._implicit_tls else 587)
        self._sender = settings.smtp_from
        self._user = settings.smtp_user
        self._password = settings.smtp_password
        self._attempts = attempts
        self._timeout_s = timeout_s
        self._pause = pause
        self._tls = tls or ssl.create_default_context()

    def send(self, letter: Letter) -> None:
        """Send a letter. A failure that may pass is tried again after a second.

        Raises:
            MailNotSent: No attempt succeeded. The log names the kind of failure, and neither address nor text.
        """
        if not is_mail_address(letter.to):
            raise MailNotSent("This is no mail address.")
        message = self._message(letter)
        for attempt in range(1, self._attempts + 1):
            try:
                self._deliver(message, letter.to)
            except (OSError, smtplib.SMTPException, MailNotSent) as error:
                final = _is_permanent(error) or attempt == self._attempts
                logger().warning("mail.failed", attempt=attempt, error=type(error).__name__, code=_code(error))
                if final:
                    raise MailNotSent from error
                self._pause(_PAUSE_S)
            else:
                return

    def _deliver(self, message: EmailMessage, to: str) -> None:
        with self._connection() as server:
            if not self._implicit_tls:
                server.ehlo()
                if server.has_extn("starttls"):
                    server.starttls(context=self._tls)
                    server.ehlo()
                elif self._password is not None:
                    raise MailNotSent("The mail server offers no TLS, so the password is not sent.")
            if self._password is not None:
                server.login(self._user, self._password.get_secret_value())
            server.send_message(message, from_addr=self._sender, to_addrs=[to])

    def _connection(self) -> smtplib.SMTP:
        if self._implicit_tls:
            return smtplib.SMTP_SSL(self._host, self._port, timeout=self._timeout_s, context=self._tls)
        return smtplib.SMTP(self._host, self._port, timeout=self._timeout_s)

    def _message(self, letter: Letter) -> EmailMessage:
        message = EmailMessage(policy=SMTP)
        message["From"] = self._sender
        message["To"] = letter.to
        message["Subject"] = one_line(letter.subject)[:_MOST_SUBJECT]
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = make_msgid(domain=self._sender.rpartition("@")[2])
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office replies
        message.set_content(letter.text)
        return message


def one_line(text: str) -> str:
    r"""The text without line breaks and control characters, so that it can add no header and no line.

    Example:
        >>> one_line("Ada\r\nBcc: eve@example.org")
        'Ada Bcc: eve@example.org'
    """
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _is_permanent(error: Exception) -> bool:
    if isinstance(error, MailNotSent | smtplib.SMTPAuthenticationError | smtplib.SMTPNotSupportedError):
        return True
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= _PERMANENT for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= _PERMANENT


def _code(error: Exception) -> int | None:
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None
