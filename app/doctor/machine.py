"""Examines the machine, the installed packages, the exposure and the data directory."""

import os
import platform
import shutil
import sqlite3
import stat
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import psutil

from app.doctor.report import Facts, Finding, Level, Report, tame
from app.errors import AppError
from app.settings import Settings
from generation.accelerator import driver_version, missing_compiler, why_no_gpu
from ingestion.child_extractor import find_soffice

_PACKAGES = (
    "footnote-rag", "torch", "transformers", "sentence-transformers", "tokenizers", "faiss-cpu", "faiss-gpu", "tantivy",
    "sqlalchemy", "psycopg", "fastapi", "starlette", "uvicorn", "pydantic", "httpx", "prometheus-client", "rapidocr",
    "mcp", "opentelemetry-sdk", "torchao", "obstore", "numpy",
)  # fmt: skip
_FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "sve")
_LEAST_DISK = 1 << 30
_LEAST_MEMORY = 1 << 30
_TIGHT = 0.1
_WITH_CONTENT = ("footnote.db", "files", "index", "lexical", "backups", "settlements.jsonl")
_GROUP_OR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def look_at_versions(report: Report) -> None:
    """Reports the versions of Python, SQLite and the main packages."""
    found: Facts = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    report.add("versions", found)


def look_at_machine(report: Report, settings: Settings) -> None:
    """Reports processor, memory and disk."""
    memory, folder = psutil.virtual_memory(), _existing(settings.data_dir)
    disk = shutil.disk_usage(folder)
    facts: Facts = {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "cpu_flags": _flags(),
        "memory_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "disk_bytes": disk.total,
        "disk_free_bytes": disk.free,
        "open_files_limit": _open_files(),
        "nvidia_driver": driver_version(),
    }
    findings = []
    if facts["nvidia_driver"] is not None:
        missing = missing_compiler()
        facts["compiler"] = missing or "found"
        if missing is not None and settings.device != "cpu":
            findings.append(
                Finding(Level.WARNING, "no-compiler", missing, "Without it a GPU generates several times slower.")
            )
    if disk.free < _LEAST_DISK:
        findings.append(
            Finding(
                Level.ERROR,
                "disk-full",
                f"{disk.free >> 20} MiB are free where the data is.",
                "Make room: uploads are refused and nothing is indexed on a full disk.",
            )
        )
    elif disk.free < disk.total * _TIGHT:
        findings.append(
            Finding(
                Level.WARNING,
                "disk-low",
                f"{disk.free >> 20} MiB of {disk.total >> 20} are free where the data is.",
                "Make room, or move FOOTNOTE_DATA_DIR to a larger disk.",
            )
        )
    if memory.available < _LEAST_MEMORY:
        findings.append(
            Finding(
                Level.WARNING,
                "memory-low",
                f"{memory.available >> 20} MiB of memory are available.",
                "Stop what else runs, set FOOTNOTE_KV_CACHE_MB, or use a smaller generator.",
            )
        )
    report.add("machine", facts, *findings)


def look_at_device(report: Report, settings: Settings) -> None:
    """Checks that the configured device exists. Imports torch, which takes seconds."""
    import torch

    findings = []
    why = why_no_gpu()
    if why is None:
        gpu = torch.cuda.get_device_name(0)
        report.add("device", {"gpu": gpu, "cuda": torch.version.cuda, "nvidia_driver": driver_version()})
        return
    if settings.device == "cuda":
        findings.append(
            Finding(
                Level.ERROR,
                "no-gpu",
                f"FOOTNOTE_DEVICE is cuda, but torch sees no GPU. {why}",
                "Mend that, or set FOOTNOTE_DEVICE to auto.",
            )
        )
    elif settings.device == "auto" and driver_version() is not None:
        findings.append(
            Finding(
                Level.WARNING,
                "gpu-unused",
                f"This machine has a GPU, and the models run on the CPU. {why}",
                "Mend that, or set FOOTNOTE_DEVICE to cpu.",
            )
        )
    report.add("device", {"cpu_threads": torch.get_num_threads()}, *findings)


def look_at_extras(report: Report, settings: Settings) -> None:
    """Reports which optional features are installed."""
    with_ocr = find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None
    with_office, with_otel = find_soffice() is not None, find_spec("opentelemetry") is not None
    findings = []
    if not with_ocr and settings.ocr == "auto":
        findings.append(
            Finding(Level.NOTE, "no-ocr", "Scanned pages are not read.", "Install the extra `ocr`: footnote-rag[ocr].")
        )
    if not with_office:
        findings.append(
            Finding(Level.NOTE, "no-libreoffice", "Files of .doc, .xls and .ppt are refused.", "Install LibreOffice.")
        )
    facts: Facts = {"ocr": with_ocr, "libreoffice": with_office, "opentelemetry": with_otel}
    report.add("extras", facts, *findings)


def look_at_exposure(report: Report, settings: Settings) -> None:
    """Reports what other users of this machine and the network can reach."""
    findings = []
    if settings.host not in {"127.0.0.1", "::1", "localhost"} and settings.tls_cert is None:
        findings.append(
            Finding(
                Level.WARNING,
                "no-tls",
                f"The server listens on {settings.host} without TLS: keys and documents cross the network readable.",
                "Put a reverse proxy in front and listen on 127.0.0.1, or set FOOTNOTE_TLS_CERT and FOOTNOTE_TLS_KEY.",
            )
        )
    if settings.admin_key is not None:
        findings.append(
            Finding(
                Level.WARNING,
                "admin-key-set",
                "FOOTNOTE_ADMIN_KEY is set: whoever reads the environment is an administrator.",
                "It is read at the first start alone: remove it, and rotate the key with `footnote keys`.",
            )
        )
    if settings.data_dir.is_dir() and _is_open(settings.data_dir):
        findings.append(
            Finding(
                Level.WARNING,
                "data-dir-open",
                f"Other users of this machine may enter the data dir{_readable_in(settings.data_dir)}.",
                "Run `chmod -R go= FOLDER` on the data dir: it holds documents, and the hashes of keys.",
            )
        )
    report.add(
        "exposure", {"host": settings.host, "port": settings.port, "tls": settings.tls_cert is not None}, *findings
    )


def look_at_data_dir(report: Report, settings: Settings) -> None:
    """Reports the sizes of the data directory's parts."""
    folder = settings.data_dir
    facts: Facts = {"exists": folder.is_dir()}
    if folder.is_dir():
        for entry in sorted(folder.iterdir()):
            facts[entry.name] = _size(entry)
    journal = folder / "settlements.jsonl"
    findings = []
    if journal.is_file() and journal.stat().st_size > 0:
        findings.append(
            Finding(
                Level.WARNING,
                "settlements-waiting",
                "Settlements wait beside the database, which could not take them.",
                "They are settled by the running server or at its next start; look at the disk and the database.",
            )
        )
    report.add("data_dir", facts, *findings)


def look_at_originals(report: Report, settings: Settings) -> None:
    """Tries a store of originals outside the data dir, with one that is deleted again."""
    facts: Facts = {
        "place": "bucket" if settings.bucket is not None else "folder" if settings.originals else "data dir"
    }
    findings = []
    if settings.originals:
        from app.server.originals import try_originals

        begun = time.perf_counter()
        try:
            try_originals(settings)
            facts["tried_in_ms"] = round((time.perf_counter() - begun) * 1000)
        except AppError as error:
            findings.append(
                Finding(
                    Level.ERROR,
                    "originals-unusable",
                    f"Originals cannot be stored, read and deleted: {tame(str(error))}",
                    "No document is taken without it. docs/OPERATIONS.md names the settings and what keys must allow.",
                )
            )
    report.add("originals", facts, *findings)


def _is_open(path: Path) -> bool:
    """Whether the file mode gives the group or others any access."""
    return bool(path.stat().st_mode & _GROUP_OR_OTHERS)


def _readable_in(folder: Path) -> str:
    """The database and the folders in the data dir that others may read, for the end of a sentence."""
    found = []
    for name in _WITH_CONTENT:
        try:
            if _is_open(folder / name):
                found.append(name)
        except OSError:
            continue
    return f" and read {', '.join(found)} in it" if found else ""


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _size(entry: Path) -> int:
    """The bytes of a file or of all files in a folder; files deleted meanwhile count 0."""
    if entry.is_symlink() or not entry.exists():
        return 0
    paths = entry.rglob("*") if entry.is_dir() else iter([entry])
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _flags() -> list[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    lines = (line for line in text.splitlines() if line.startswith(("flags", "Features")))
    present = set(next(lines, "").split())
    return [flag for flag in _FLAGS if flag in present]


def _open_files() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
