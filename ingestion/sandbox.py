"""Takes from a parser process what it does not need: the network, other files, other processes.

`python -m ingestion.sandbox FOLDER` enters a sandbox and prints as JSON what then holds; `try_sandbox` reads it.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ingestion.landlock import CHANGE, READ, RUN, Access, restrict_files
from ingestion.seccomp import refuse_calls

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CAPABILITIES_VERSION = 0x20080522
_SECONDS = 60.0
_ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = ("ingestion", "retrieval")  # those that parsers import
# Files of the system that libraries open: of the loader, the languages, the fonts, the processor.
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/alternatives", "/etc/fonts", "/etc/locale.alias", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf",
    "/etc/passwd", "/etc/group", "/etc/libreoffice", "/var/lib/libreoffice", "/var/spool/libreoffice",
    "/var/cache/fontconfig", "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys",
    "/proc/filesystems", "/sys/devices/system", "/sys/fs/cgroup", "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What was taken from this process.

    `network_namespace`: it has a network of its own, without interfaces. `calls`: sockets and other processes'
    memory are refused (`ingestion.seccomp`). `files`: it opens the files of its folder and of the installation alone
    (`ingestion.landlock`). `not_dumpable`: other processes of the user cannot look into it.
    """

    network_namespace: bool
    calls: bool
    files: bool
    not_dumpable: bool


def enter_sandbox(*, work: Path, shown: Path, soffice: Path | None = None) -> Sandbox:
    """Enter the tightest sandbox that this kernel offers to an ordinary user. There is no way back.

    To be called before threads are started: a namespace is a thread's. What the kernel refuses is left out; the
    result says so.

    Args:
        work: The folder for temporary files, which it may change.
        shown: The folder with the document, which it may read.
        soffice: LibreOffice's program, which it may run; None lets it run nothing.
    """
    if not sys.platform.startswith("linux"):
        return Sandbox(network_namespace=False, calls=False, files=False, not_dumpable=False)
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    alone = libc.unshare(_CLONE_NEWNET) == 0
    if not alone and libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        alone = True
        _keep_identity(uid, gid)
    not_dumpable = libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
    _drop_capabilities(libc)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    files = restrict_files(_allowed(work, shown, soffice))
    calls = refuse_calls(local_sockets=soffice is not None)
    return Sandbox(network_namespace=alone, calls=calls, files=files, not_dumpable=not_dumpable)


def try_sandbox() -> dict[str, bool]:
    """What holds in a sandbox on this machine: the fields of `Sandbox`, and what a process in one has tried in vain.

    These are `no_network`, `no_other_files` and `no_other_processes`. Nothing holds where the process failed.
    """
    with tempfile.TemporaryDirectory(prefix="footnote-sandbox-") as folder:
        tried = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "ingestion.sandbox", folder],
            env={"PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    try:
        held: dict[str, bool] = json.loads(tried.stdout)
    except ValueError:
        return {}
    return held


def _keep_identity(uid: int, gid: int) -> None:
    """In a new user namespace the process keeps the numbers of its user and group."""
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """A new user namespace gives all capabilities inside it: they would show more of the kernel to a hostile file."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


def _allowed(work: Path, shown: Path, soffice: Path | None) -> dict[Access, list[Path]]:
    """Folders by what may be done in them.

    Of the folder that holds this package only packages are among them: in a checkout the data may be there.
    """
    installed = [Path(place) for place in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    found = [Path(entry) for entry in sys.path if entry and Path(entry).is_absolute()]
    packages = [place for place in found if not _ROOT.is_relative_to(place)]
    readable = [shown, *(_ROOT / name for name in _PACKAGES), *installed, *packages, *map(Path, _SYSTEM)]
    allowed = {CHANGE: [work], Access.READ_FILE | Access.WRITE_FILE: [Path("/dev/null")]}
    if soffice is None:
        return allowed | {READ: readable}
    # LibreOffice has a socket between its own processes, always in /tmp, and removes it.
    sockets = {Access.MAKE_SOCK | Access.REMOVE_FILE: [Path("/tmp")]}  # noqa: S108
    return allowed | sockets | {RUN: [*readable, *_program(soffice)]}


def _program(soffice: Path) -> list[Path]:
    """The folder of LibreOffice: its program is a link or a script in `…/program`."""
    real = soffice.resolve()
    return [soffice, real, *([real.parent.parent] if real.parent.name == "program" else [])]


def _refuses_network() -> bool:
    """Whether no datagram leaves: there is no socket, or no route."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.connect(("192.0.2.1", 9))  # a network for documentation (RFC 5737); nothing is sent
    except OSError:
        return True
    return False


def _refuses(path: Path) -> bool:
    try:
        with path.open("rb"):
            return False
    except OSError:
        return True


def main() -> None:
    """Enter a sandbox with temporary files in the folder that is named, and print what holds."""
    folder = Path(sys.argv[1])
    work, shown, outside = folder / "work", folder / "shown", folder / "outside"
    work.mkdir()
    shown.mkdir()
    outside.touch()
    sandbox = enter_sandbox(work=work, shown=shown)
    tried = {
        "no_network": _refuses_network(),
        "no_other_files": _refuses(outside),
        "no_other_processes": _refuses(Path(f"/proc/{os.getppid()}/environ")),
    }
    sys.stdout.write(json.dumps(asdict(sandbox) | tried))


if __name__ == "__main__":
    main()
