"""What is in a backup: the names of its members, and the two descriptions among them.

`manifest.json` first, so that a restore can refuse before it has read gigabytes; then `rows/<table>/<n>.jsonl`,
`files/<document id>/<version>`, and `summary.json`, which says what came of it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from app.backup.archive import BackupUnusable

FORMAT = 1
MANIFEST = "manifest.json"
SUMMARY = "summary.json"

_ROWS = re.compile(r"rows/[a-z0-9_]+/\d{6,}\.jsonl")
_ORIGINAL = re.compile(r"files/([A-Za-z0-9_-]{1,64})/([1-9]\d{0,9})")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where a backup comes from. `schema` is the database's revision, `created_at` Unix seconds."""

    format: int
    footnote: str
    created_at: float
    schema: str
    dialect: str
    settings: dict[str, str | int | None]

    def encode(self) -> bytes:
        """As it lies in the backup."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, raw: bytes) -> "Manifest":
        """The reverse.

        Raises:
            BackupUnusable: It is none, or of a format this version does not know.
        """
        try:
            fields = json.loads(raw)
            if fields["format"] != FORMAT:
                raise BackupUnusable("The backup was made by a newer Footnote; restore it with that version.")
            return cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise BackupUnusable("The file is no backup of Footnote's: its manifest cannot be read.") from error


@dataclass(frozen=True, slots=True)
class Summary:
    """What a backup holds.

    `missing` names originals (`<document id>/<version>`) the database knows and the disk had not:
    deleted while the backup was made, or lost before. `altered` are those with other bytes than were uploaded.
    """

    rows: Mapping[str, int]
    originals: int
    original_bytes: int
    missing: tuple[str, ...]
    altered: tuple[str, ...]

    def encode(self) -> bytes:
        """As it lies in the backup."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def decode(cls, raw: bytes) -> "Summary":
        """The reverse; the checksums have vouched for `raw`."""
        fields = json.loads(raw)
        return cls(**{**fields, "missing": tuple(fields["missing"]), "altered": tuple(fields["altered"])})


def rows_name(table: str, number: int) -> str:
    """The member for a table's part `number`, from 1."""
    return f"rows/{table}/{number:06}.jsonl"


def original_name(document_id: str, version: int) -> str:
    """The member for a version's original."""
    return f"files/{document_id}/{version}"


def is_rows(name: str) -> bool:
    """Whether a member holds rows."""
    return _ROWS.fullmatch(name) is not None


def original_of(name: str) -> tuple[str, int] | None:
    """(document id, version) of a member that is an original; a name that could lead elsewhere is none."""
    match = _ORIGINAL.fullmatch(name)
    return (match[1], int(match[2])) if match else None
