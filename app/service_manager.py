"""What the service manager that started this process is told: systemd's notification protocol (sd_notify(3))."""

import os
import socket


def notify(state: str) -> None:
    """Send `READY=1`, `STOPPING=1` or another assignment to the manager's socket; nothing where there is none.

    A manager that does not listen is no reason to stop serving.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    name = "\0" + address[1:] if address.startswith("@") else address  # the abstract namespace
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.connect(name)
            channel.sendall(state.encode())
    except OSError:
        return
