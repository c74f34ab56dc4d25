"""Bodies of uploads."""

from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator

from app.api.schemas.bounds import MOST_DOCUMENT, Id
from app.api.schemas.shape import NewMetadata, RequestBody

OnDuplicate = Literal["skip", "replace", "version", "error"]


ON_DUPLICATE = (
    "What to do when the collection already has these bytes or this `external_id`. `skip` returns the existing "
    "document; `version` adds a new version and keeps the old ones; `replace` adds a new version and removes the old "
    "ones; `error` answers 409. Default: `skip` for identical bytes, `version` for new bytes with a known "
    "`external_id`."
)


PROTECTED = (
    "Password of an encrypted file. It is kept until the document is indexed or has failed: in memory, never written "
    "to disk, or, where several processes share a database, sealed in it. After a restart of a process that is alone, "
    "the document fails as `encrypted`; retry it with the password."
)


class UploadFields(RequestBody):
    """The fields of every upload."""

    collection_id: Id | None = Field(
        default=None, description="The collection to put it into; default: the `default` collection."
    )
    external_id: str | None = Field(
        default=None, min_length=1, max_length=512, description="Your own id, unique in the collection."
    )
    metadata: NewMetadata = Field(default_factory=dict, description="Your own fields, usable in filters.")
    on_duplicate: OnDuplicate | None = Field(default=None, description=ON_DUPLICATE)
    wait: float = Field(default=0, ge=0, le=30, description="Seconds to wait for indexing before answering.")


class TextDocument(UploadFields):
    """A document given as text instead of a file."""

    text: str = Field(
        min_length=1,
        max_length=MOST_DOCUMENT,
        description="The document's text.",
        examples=["Revenue rose 12 % in 2025."],
    )
    filename: str = Field(
        min_length=1, max_length=1024, description="Its name; `.md` makes it Markdown.", examples=["notes.md"]
    )


class WebDocument(UploadFields):
    """A document to fetch from the web; needs `FOOTNOTE_WEB_PAGES`."""

    url: str = Field(
        min_length=1,
        max_length=2048,
        description="`http` or `https`, port 80 or 443, on the public internet. It is stored as the metadata "
        "field `url`, unless you set one.",
        examples=["https://example.com/report.html"],
    )
    filename: str | None = Field(
        default=None, min_length=1, max_length=1024, description="Its name; default: the last part of the address."
    )
    password: SecretStr | None = Field(default=None, max_length=1024, description=PROTECTED)


class FileFields(UploadFields):
    """The form fields sent with a multipart `file`."""

    password: SecretStr | None = Field(default=None, max_length=1024, description=PROTECTED)

    @model_validator(mode="before")
    @classmethod
    def of_their_kinds(cls, values: Any) -> Any:
        """Skips the check of JSON types: all form fields are strings."""
        return values
