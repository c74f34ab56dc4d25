"""The nouns of an examination."""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TypeAlias

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
