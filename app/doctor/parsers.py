"""Examines what parsers of documents are kept from on this machine."""

from collections.abc import Callable, Mapping

from app.doctor.report import Facts, Finding, Level, Report
from ingestion.sandbox import try_sandbox


def look_at_parsers(report: Report, *, tried: Callable[[], Mapping[str, bool]] = try_sandbox) -> None:
    """Reports which walls a parser's sandbox has here; a process that enters one tries them."""
    held: Facts = dict(tried())
    findings = []
    if not held.get("no_network"):
        findings.append(
            Finding(
                Level.WARNING,
                "parsers-reach-network",
                "A parser that a hostile document has taken over could reach the network.",
                "Run Footnote on Linux, with namespaces or seccomp allowed, or deny the service the network.",
            )
        )
    if not held.get("no_other_files"):
        findings.append(
            Finding(
                Level.WARNING,
                "parsers-read-files",
                "A parser that a hostile document has taken over could read what the server's user can read.",
                "Use a kernel with Landlock (Linux 5.13 and newer, in the list of `lsm=`).",
            )
        )
    report.add("parsers", held, *findings)
