"""Legacy Office documents (.doc, .xls, .ppt), rewritten in the current format by LibreOffice."""

import os
import subprocess
from pathlib import Path

from ingestion.errors import LimitExceeded, Malformed
from ingestion.formats import FORMATS
from ingestion.types import MediaType

# LibreOffice's own settings: no macros, no active content, nothing fetched: links are never updated and
# the proxy is a port without a listener.
_SETTINGS = (
    ("Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Common/Security/Scripting", "DisableActiveContent", "true"),
    ("Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Writer/Content/Update", "Link", "2"),
    ("Calc/Content/Update", "Link", "2"),
)
_PROXY = (
    ("ooInetProxyType", "2"),
    ("ooInetHTTPProxyName", "127.0.0.1"),
    ("ooInetHTTPProxyPort", "9"),
    ("ooInetHTTPSProxyName", "127.0.0.1"),
    ("ooInetHTTPSProxyPort", "9"),
)


def converted(path: Path, into: Path, media_type: MediaType, *, soffice: Path, seconds: float) -> Path:
    """The document at `path` in the current format, a new file in the folder `into`.

    LibreOffice runs with a profile of its own in `into`, in the caller's process group and under its
    limits. Its error output is discarded, since it names paths.

    Raises:
        LimitExceeded: It took longer than `seconds`.
        Malformed: It made nothing of the document.
    """
    legacy = FORMATS[media_type]
    assert legacy.current is not None, "the format needs no conversion"
    suffix, current = legacy.extensions[0], FORMATS[legacy.current].extensions[0]
    source = into / f"document.{suffix}"
    source.symlink_to(path.absolute())
    profile = into / "profile"
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(_registry())
    command = [
        str(soffice), "--headless", "--norestore", "--nolockcheck", "--nodefault", "--nologo",
        f"-env:UserInstallation={profile.absolute().as_uri()}",
        "--convert-to", current, "--outdir", str(into), str(source),
    ]  # fmt: skip
    environment = os.environ | {"HOME": str(into), "TMPDIR": str(into), "PATH": "/usr/bin:/bin"}  # it is a shell script
    try:
        subprocess.run(  # noqa: S603 - the program that the operator installed
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LimitExceeded(
            f"Converting the document took longer than {seconds:g} seconds, the most we allow."
        ) from None
    made = into / f"document.{current}"
    if not made.is_file() or made.is_symlink():
        raise Malformed("LibreOffice can make nothing of the document; it may be damaged, or behind a password.")
    return made


def _registry() -> str:
    items = [(f"/org.openoffice.Office.{path}", *rest) for path, *rest in _SETTINGS]
    items += [("/org.openoffice.Inet/Settings", *rest) for rest in _PROXY]
    body = "".join(
        f'<item oor:path="{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>'
        for path, name, value in items
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry" '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"{body}</oor:items>"
    )
