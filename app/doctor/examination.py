"""Examines an installation without changing it, for `footnote doctor` and `footnote check`."""

import httpx

from app.backup.data_dir import is_locked
from app.doctor.books import look_at_database
from app.doctor.machine import (
    look_at_data_dir,
    look_at_device,
    look_at_exposure,
    look_at_extras,
    look_at_machine,
    look_at_originals,
    look_at_versions,
)
from app.doctor.models import look_at_index, look_at_models
from app.doctor.parsers import look_at_parsers
from app.doctor.report import Report, shown
from app.doctor.server import look_at_server
from app.local_server import local_server
from app.settings import Settings


def examine_models_and_database(settings: Settings) -> Report:
    """Examines what must be sound before documents can be checked: versions, device, models and database."""
    report = Report()
    look_at_versions(report)
    look_at_device(report, settings)
    look_at_models(report, settings)
    look_at_database(report, settings)
    return report


def examine(settings: Settings) -> Report:
    """Examines this machine, its data directory without keeping it locked, and the server running on it, if any."""
    report = Report()
    look_at_versions(report)
    report.add("settings", shown(settings))
    look_at_machine(report, settings)
    look_at_extras(report, settings)
    look_at_exposure(report, settings)
    look_at_parsers(report)
    look_at_data_dir(report, settings)
    look_at_originals(report, settings)
    look_at_database(report, settings)
    look_at_index(report, settings)
    look_at_models(report, settings)
    announced = local_server(settings.data_dir)
    address = announced.url if announced is not None and is_locked(settings.data_dir) else settings.address()
    with httpx.Client(base_url=address, trust_env=False, verify=False) as http:  # noqa: S501 - ourselves
        look_at_server(report, http, expected=False)
    return report


def examine_server(http: httpx.Client) -> Report:
    """Examines a server elsewhere through its public endpoints, and the client installed here."""
    report = Report()
    look_at_versions(report)
    look_at_server(report, http, expected=True)
    return report
