"""The report of an examination: facts by section, findings by severity, and the redaction of secrets in both."""

import json
import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from pydantic import SecretStr

from app.settings import Settings

Facts: TypeAlias = dict[str, object]
"""Names mapped to numbers, words, lists and nested facts: JSON values."""


class Level(StrEnum):
    """Severity of a finding. An error keeps the installation from working correctly."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem and its remedy. `code` is stable across versions, so that scripts can match it."""

    level: Level
    code: str
    sentence: str
    remedy: str


@dataclass(slots=True)
class Report:
    """Facts by section, and the problems found."""

    sections: dict[str, Facts] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.level is not Level.ERROR for finding in self.findings)

    def add(self, section: str, facts: Facts, *findings: Finding) -> None:
        """Adds the facts and findings of one section."""
        self.sections[section] = facts
        self.findings.extend(findings)

    def to_json(self) -> str:
        """The report as JSON."""
        body = {**self.sections, "findings": [asdict(finding) for finding in self.findings], "sound": self.sound}
        return json.dumps(body, indent=2, default=str, ensure_ascii=False)


_BEHIND_SCHEME = re.compile(r"(?<=[a-z0-9+.\-])://(?:[^/?#\s]*@)?([^?#\s]*)(?:\?[^#\s]*)?(?:#\S*)?", re.IGNORECASE)


def shown(settings: Settings) -> Facts:
    """All settings; a secret is shown as `set` or `unset`."""
    return {name: _shown(getattr(settings, name)) for name in type(settings).model_fields}


def tame(text: str) -> str:
    """Redacts `text`: URLs lose users, passwords and queries; the home folder becomes `~`."""
    home = str(Path.home())
    text = _BEHIND_SCHEME.sub(r"://\1", text)
    return text.replace(home, "~") if home != "/" else text


def brief(value: object) -> str:
    """A fact as one line of text."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {brief(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(brief(each) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _shown(value: object) -> object:
    if isinstance(value, SecretStr):
        return "set"
    if isinstance(value, str | Path):
        return tame(str(value))
    return value
