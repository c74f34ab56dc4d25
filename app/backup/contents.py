"""The members of a backup: their names, the manifest and the summary.

`manifest.json` comes first, so that a restore can refuse it before it reads gigabytes. Then follow
`rows/<table>/<n>.jsonl`, `files/<name of an original>`, and last `summary.json`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from app.backup.archive import BackupUnusable
from app.documents.ports import ObjectName, is_object_name
from app.errors import SetupError

FORMAT = 1
MANIFEST = "manifest.json"
SUMMARY = "summary.json"

_ROWS = re.compile(r"rows/([a-z0-9_]+)/([0-9]{6}|[1-9][0-9]{6,17})\.jsonl")
_FILES = "files/"


class NotRestorable(SetupError):
    """A backup was not made, because a restore would refuse it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"No backup was written, because a restore would refuse it: {what!r}. This is a fault of Footnote. "
            "Copy the data dir while the server is stopped, and report the fault."
        )


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """The origin of a backup: versions and settings. `schema` is the database's revision, `created_at` Unix seconds."""

    format: int
    footnote: str
    created_at: float
    schema: str
    dialect: str
    settings: dict[str, str | int | None]

    def encode(self) -> bytes:
        """Encode as the bytes of the member."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, raw: bytes) -> "BackupManifest":
        """Decode the bytes of the member.

        Raises:
            BackupUnusable: They are not a manifest, or one of a newer format.
        """
        try:
            fields = json.loads(raw)
            if fields["format"] != FORMAT:
                raise BackupUnusable("The backup was made by a newer Footnote; restore it with that version.")
            return cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise BackupUnusable("The file is not a backup of Footnote: its manifest cannot be read.") from error


@dataclass(frozen=True, slots=True)
class Summary:
    """The contents of a backup: rows by table, number and bytes of originals.

    `missing` names versions (`<document id>/<version>`) whose original the disk did not have: deleted while the backup
    was made, or lost before. `altered` names those whose bytes differ from the upload.
    """

    rows: Mapping[str, int]
    originals: int
    original_bytes: int
    missing: tuple[str, ...]
    altered: tuple[str, ...]

    def encode(self) -> bytes:
        """Encode as the bytes of the member."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def decode(cls, raw: bytes) -> "Summary":
        """Decode the bytes of the member, after the checksums were verified."""
        fields = json.loads(raw)
        return cls(**{**fields, "missing": tuple(fields["missing"]), "altered": tuple(fields["altered"])})


def rows_name(table: str, number: int) -> str:
    """The name of the member with part `number` of a table, from 1.

    Raises:
        NotRestorable: `is_rows` would not accept the name.
    """
    name = f"rows/{table}/{number:06}.jsonl"
    if not is_rows(name):
        raise NotRestorable(name)
    return name


def original_name(name: ObjectName) -> str:
    """The name of the member with an original.

    Raises:
        NotRestorable: `original_of` would not read the same name from it.
    """
    member = _FILES + name
    if original_of(member) != name:
        raise NotRestorable(member)
    return member


def is_rows(name: str) -> bool:
    """Whether `name` is that of a member with rows."""
    return _ROWS.fullmatch(name) is not None


def original_of(member: str) -> ObjectName | None:
    """The name of the original in a member; None for other members, such as paths out of the folder."""
    name = member.removeprefix(_FILES)
    return name if name != member and is_object_name(name) else None
