"""The nouns of an examination."""

import json
import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from pydantic import SecretStr

from app.settings import Settings

Facts: TypeAlias = dict[str, object]
"""Names to numbers, words, lists and further facts: what JSON can hold."""


class Level(StrEnum):
    """How bad a finding is; an error keeps the installation from working as it should."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something somebody should know, and what to do about it. `code` is stable, for whoever greps."""

    level: Level
    code: str
    sentence: str
    remedy: str


@dataclass(slots=True)
class Report:
    """What was seen, by section, and what was found wrong."""

    sections: dict[str, Facts] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.level is not Level.ERROR for finding in self.findings)

    def add(self, section: str, facts: Facts, *findings: Finding) -> None:
        """Take in what one look saw."""
        self.sections[section] = facts
        self.findings.extend(findings)

    def to_json(self) -> str:
        """The report as JSON."""
        body = {**self.sections, "findings": [asdict(finding) for finding in self.findings], "sound": self.sound}
        return json.dumps(body, indent=2, default=str, ensure_ascii=False)


_URL = re.compile(r"\b([a-z][a-z0-9+.\-]*)://(?:[^/?#\s]*@)?([^?#\s]*)(?:\?[^#\s]*)?(?:#\S*)?", re.IGNORECASE)


def shown(settings: Settings) -> Facts:
    """Every setting; a secret is `set` or `unset`."""
    return {name: _shown(getattr(settings, name)) for name in type(settings).model_fields}


def tame(text: str) -> str:
    """`text` without users, passwords and queries of the addresses in it, the home folder as `~`."""
    home = str(Path.home())
    text = _URL.sub(lambda found: f"{found[1]}://{found[2]}", text)
    return text.replace(home, "~") if home != "/" else text


def _shown(value: object) -> object:
    if isinstance(value, SecretStr):
        return "set"
    if isinstance(value, str | Path):
        return tame(str(value))
    return value
