"""Reads e-mail messages (RFC 5322, MIME): the text, then each readable attachment under its name."""

import tempfile
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage
from pathlib import Path

from ingestion.builder import TextBuilder, one_line
from ingestion.encoding import decode, wide_encoding
from ingestion.errors import IngestionError, LimitExceeded, Malformed
from ingestion.normalise import normalise
from ingestion.ports import Extractor
from ingestion.readers.text import paragraph_spans
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType

_HEADERS = ("From", "To", "Cc", "Date")
_BODIES = ("text/plain", "text/html")
_MOST_ATTACHMENTS = 100
_MOST_PARTS = 10_000
_NAME_CHARS = 255


def read_email(path: Path, limits: ExtractionLimits, attachments: Extractor | None = None) -> Extraction:
    """Read a message: subject, sender, recipients, date, its plain text (else its HTML), its attachments.

    `attachments` reads the files in it; without one they are named alone. An attachment that cannot
    be read is named with the reason, and does not fail the message.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    data = path.read_bytes()
    if wide_encoding(data[:8192]):
        data = decode(data).encode()
    message = message_from_bytes(data, policy=policy.default)
    builder = TextBuilder(limits)
    subject = _header(message, "Subject")
    builder.append(BlockKind.HEADING, subject, level=1)
    lines = [f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    builder.append(BlockKind.PARAGRAPH, "\n".join(lines))
    files: list[EmailMessage] = []
    for part in _parts(message):
        if _is_body(part):
            _append_body(part, builder)
        elif not _is_inline_image(part):
            files.append(part)
    if len(files) > _MOST_ATTACHMENTS:
        raise LimitExceeded(f"The message has more than {_MOST_ATTACHMENTS} attachments, the most we read.")
    for file in files:
        _append_attachment(file, builder, attachments)
    return builder.build(MediaType.EMAIL, title=subject)


def _header(message: EmailMessage, name: str) -> str:
    """A header's decoded value; undecoded where the parser of the standard library fails."""
    try:
        return one_line(normalise(str(message.get(name, ""))))
    except (MessageError, ValueError, LookupError, AttributeError, TypeError):
        raw = (value for key, value in message.raw_items() if key.lower() == name.lower())
        return one_line(normalise(next(raw, "")))


def _parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """The parts to read, in order: of alternatives (RFC 2046 §5.1.4) the plain text, else the last."""
    waiting: list[EmailMessage] = [message]
    seen = 0
    while waiting:
        part = waiting.pop()
        seen += 1
        if seen > _MOST_PARTS:
            raise LimitExceeded(f"The message has more than {_MOST_PARTS:,} parts, the most we read.")
        if part.get_content_maintype() != "multipart":
            yield part
            continue
        children = part.get_payload()
        if not isinstance(children, list):  # declared multipart without parts: read its text
            yield part
            continue
        inside = [child for child in children if isinstance(child, EmailMessage)]
        if part.get_content_type() == "multipart/alternative":
            plain = [child for child in inside if child.get_content_type() == "text/plain" and _text(child).strip()]
            inside = (plain or inside[-1:])[:1]
        waiting.extend(reversed(inside))


def _is_body(part: EmailMessage) -> bool:
    named = part.get_content_disposition() == "attachment" or bool(part.get_filename())
    return not named and (part.get_content_type() in _BODIES or part.get_content_maintype() == "multipart")


def _is_inline_image(part: EmailMessage) -> bool:
    """A picture embedded in the HTML (RFC 2387), such as a logo, which is no attachment."""
    shown = part.get_content_disposition() != "attachment" and "Content-ID" in part
    return shown and part.get_content_maintype() == "image"


def _text(part: EmailMessage) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return str(part.get_payload()) if isinstance(part.get_payload(), str) else ""
    try:
        return data.decode(part.get_content_charset() or "utf-8")
    except (LookupError, UnicodeError, ValueError):
        return decode(data)


def _append_body(part: EmailMessage, builder: TextBuilder) -> None:
    text = normalise(_text(part)).strip()
    if part.get_content_type() == "text/html" and text:
        from ingestion.readers.html import append_page  # loads docling, which most messages do without

        append_page(text, builder)
    elif text:
        builder.append_verbatim(text, paragraph_spans(text))


def _append_attachment(part: EmailMessage, builder: TextBuilder, attachments: Extractor | None) -> None:
    is_message = part.get_content_type() == "message/rfc822"
    name = one_line(normalise(part.get_filename() or ""))[-_NAME_CHARS:]
    if not name:
        name = "message.eml" if is_message else f"unnamed ({part.get_content_type()})"
    try:
        found = _read(part, name, is_message=is_message, attachments=attachments)
    except IngestionError as error:
        builder.append(BlockKind.PARAGRAPH, f"Attachment {name}: not read. {error}")
    else:
        builder.append(BlockKind.HEADING, name, level=2)
        builder.append_extraction(found, below=2)


def _read(part: EmailMessage, name: str, *, is_message: bool, attachments: Extractor | None) -> Extraction:
    if attachments is None:
        raise LimitExceeded("Messages are attached to messages too deeply.")
    if is_message and not name.lower().endswith(".eml"):
        name = f"{name}.eml"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attachment"
        try:
            path.write_bytes(_bytes(part, is_message=is_message))
        except OSError as error:  # the process may write files of some size only
            raise LimitExceeded("It is larger than the files we unpack.") from error
        return attachments.extract(path, filename=name)


def _bytes(part: EmailMessage, *, is_message: bool) -> bytes:
    payload = part.get_payload()
    if is_message and isinstance(payload, list) and payload and isinstance(payload[0], EmailMessage):
        try:
            return payload[0].as_bytes()
        except (ValueError, LookupError, AttributeError, TypeError) as error:  # such as an unparsable header
            raise Malformed("The message is damaged.") from error
    decoded = part.get_payload(decode=True)
    return decoded if isinstance(decoded, bytes) else b""
