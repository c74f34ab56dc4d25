"""An examination: every look, one after the other, none of which changes anything."""

import httpx

from app.doctor.books import look_at_database
from app.doctor.machine import (
    look_at_data_dir,
    look_at_exposure,
    look_at_extras,
    look_at_machine,
    look_at_versions,
)
from app.doctor.models import look_at_index, look_at_models
from app.doctor.report import Report, shown
from app.doctor.server import look_at_server
from app.settings import Settings


def examine(settings: Settings) -> Report:
    """Look at this machine, its data dir and the server that may be running on it. The data dir is not locked."""
    report = Report()
    look_at_versions(report)
    report.add("settings", shown(settings))
    look_at_machine(report, settings)
    look_at_extras(report, settings)
    look_at_exposure(report, settings)
    look_at_data_dir(report, settings)
    look_at_database(report, settings)
    look_at_index(report, settings)
    look_at_models(report, settings)
    with httpx.Client(base_url=settings.address(), trust_env=False, verify=False) as http:  # noqa: S501 - ourselves
        look_at_server(report, http, expected=False)
    return report


def examine_server(http: httpx.Client) -> Report:
    """Look at a server elsewhere, by what it shows, and at what is installed here to talk to it."""
    report = Report()
    look_at_versions(report)
    look_at_server(report, http, expected=True)
    return report
