"""A mail server of one test: it takes mail on 127.0.0.1, and fails where it is told to."""

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """What the server took, and how it behaves."""

    port: int = 0
    letters: list[EmailMessage] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Replies to the next recipients, such as `451 later`; then it takes them."""
    tls: ssl.SSLContext | None = None
    connections: int = 0


@contextmanager
def smtp_server(*, tls: ssl.SSLContext | None = None) -> Iterator[Mailbox]:
    """Run a server; with `tls` it offers STARTTLS and AUTH."""
    box = Mailbox(tls=tls)

    class Talk(socketserver.StreamRequestHandler):
        timeout = 10

        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            box.connections += 1
            with suppress(ssl.SSLError):  # a client that does not trust the certificate
                self.say("220 ready")
                while line := self.rfile.readline():
                    command = line.decode().strip()
                    box.commands.append(command)
                    if not self.obey(command):
                        return

        def finish(self) -> None:
            super().finish()
            self.connection.close()

        def obey(self, command: str) -> bool:
            match command.split(" ", maxsplit=1)[0].upper():
                case "EHLO":
                    offers = [] if box.tls is None else ["STARTTLS"]
                    if isinstance(self.connection, ssl.SSLSocket):
                        offers = ["AUTH PLAIN"]
                    for offer in ("127.0.0.1", *offers):
                        self.say(f"250-{offer}")
                    self.say("250 HELP")
                case "STARTTLS":
                    assert box.tls is not None
                    self.say("220 go on")
                    self.connection = box.tls.wrap_socket(self.connection, server_side=True)
                    self.rfile = self.connection.makefile("rb")
                    self.wfile = self.connection.makefile("wb", buffering=0)
                case "RCPT":
                    self.say(box.refusals.pop(0) if box.refusals else "250 yes")
                case "DATA":
                    self.say("354 go on")
                    lines = []
                    while (line := self.rfile.readline()) not in (b".\r\n", b""):
                        lines.append(line)
                    letter = message_from_bytes(b"".join(lines), policy=policy.default)
                    assert isinstance(letter, EmailMessage)
                    box.letters.append(letter)
                    self.say("250 taken")
                case "AUTH":
                    self.say("235 welcome")
                case "QUIT":
                    self.say("221 bye")
                    return False
                case _:
                    self.say("250 fine")
            return True

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Talk) as server:
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join()
