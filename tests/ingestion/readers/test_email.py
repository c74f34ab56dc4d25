"""ingestion.readers.email: a message, its best body, its attachments."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from ingestion.errors import LimitExceeded, NoText
from ingestion.extraction import LocalExtractor
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType
from tests.ingestion.pdf_file import pdf_bytes
from tests.ingestion.readers.reading import blocks, paths, read
from tests.ingestion.zip_file import zip_bytes

HEADER = (
    BlockKind.PARAGRAPH,
    "From: Ada <ada@example.com>\nTo: Bob <bob@example.com>\nDate: Mon, 05 Oct 2026 10:00:00 +0000",
)


def message(subject: str = "Ducks on the läke", body: str | None = "Hello Bob,\n\nthey swim.") -> EmailMessage:
    made = EmailMessage()
    made["Subject"] = subject
    made["From"] = "Ada <ada@example.com>"
    made["To"] = "Bob <bob@example.com>"
    made["Date"] = "Mon, 05 Oct 2026 10:00:00 +0000"
    made["X-Mailer"] = "nobody reads this"
    if body is not None:
        made.set_content(body)
    return made


def read_message(folder: Path, made: EmailMessage) -> Extraction:
    return read(folder, "a.eml", made.as_bytes())


def test_a_message_gives_its_subject_addresses_date_and_text(tmp_path: Path) -> None:
    extraction = read_message(tmp_path, message())

    assert blocks(extraction) == [
        (BlockKind.HEADING, "Ducks on the läke"),
        HEADER,
        (BlockKind.PARAGRAPH, "Hello Bob,"),
        (BlockKind.PARAGRAPH, "they swim."),
    ]
    assert extraction.title == "Ducks on the läke"
    assert extraction.media_type is MediaType.EMAIL


def test_of_alternatives_the_plain_text_is_read(tmp_path: Path) -> None:
    made = message(body="plain words")
    made.add_alternative("<p>rich words</p>", subtype="html")

    text = read_message(tmp_path, made).text

    assert "plain words" in text
    assert "rich" not in text


def test_html_is_read_where_there_is_no_plain_text(tmp_path: Path) -> None:
    made = message(body=None)
    made.set_content("<style>p{}</style><p>rich <b>words</b></p><img src='cid:logo'>", subtype="html")
    made.add_related(b"\x89PNG", "image", "png", cid="<logo>")

    assert [text for _, text in blocks(read_message(tmp_path, made))][2:] == ["rich words"]


def test_an_attachment_stands_under_its_name_with_its_own_headings(tmp_path: Path) -> None:
    made = message()
    made.add_attachment(b"# Lakes\n\ndeep\n", "text", "markdown", filename="notes.md")
    made.add_attachment(pdf_bytes([["On paper"]]), "application", "octet-stream", filename="paper.pdf")

    extraction = read_message(tmp_path, made)

    assert blocks(extraction)[4:] == [
        (BlockKind.HEADING, "notes.md"),
        (BlockKind.HEADING, "# Lakes"),
        (BlockKind.PARAGRAPH, "deep"),
        (BlockKind.HEADING, "paper.pdf"),
        (BlockKind.PARAGRAPH, "On paper"),
    ]
    assert paths(extraction)[6] == ("Ducks on the läke", "notes.md", "Lakes")
    assert paths(extraction)[8] == ("Ducks on the läke", "paper.pdf")
    assert extraction.pages == ()


def test_an_attachment_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    made = message()
    made.add_attachment(b"\x89PNG\r\n\x1a\n" + bytes(99), "image", "png", filename="duck.png")
    made.add_attachment(zip_bytes({"a.txt": "x"}), "application", "zip", filename="more.zip")
    made.add_attachment(b"", "text", "plain", filename="nothing.txt")

    lines = [text for _, text in blocks(read_message(tmp_path, made))][4:]

    assert [line.split(" not read. ")[0] for line in lines] == [
        "Attachment duck.png:", "Attachment more.zip:", "Attachment nothing.txt:",
    ]  # fmt: skip
    assert "an image" in lines[0]


def test_messages_in_messages_are_read_to_a_small_depth(tmp_path: Path) -> None:
    made = message("innermost", "the core")
    for depth in range(6):
        outer = message(f"level {depth}", "wrapped")
        outer.add_attachment(made)
        made = outer

    text = read_message(tmp_path, made).text

    assert text.count("Subject") == 0
    assert text.count("wrapped") == 4
    assert "the core" not in text
    assert "too deeply" in text


def test_caps_hold_over_a_message_and_all_that_is_attached(tmp_path: Path) -> None:
    made = message()
    for number in range(5):
        made.add_attachment("w " * 400, filename=f"{number}.txt")
    path = tmp_path / "mail"
    path.write_bytes(made.as_bytes())

    with pytest.raises(LimitExceeded, match="characters"):
        LocalExtractor(ExtractionLimits(text_chars=2000)).extract(path, filename="a.eml")


def test_too_many_attachments_are_refused(tmp_path: Path) -> None:
    made = message()
    for number in range(101):
        made.add_attachment("x", filename=f"{number}.txt")

    with pytest.raises(LimitExceeded, match="100 attachments"):
        read_message(tmp_path, made)


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: =?utf-8?q?M=C3=BCll?=\nContent-Type: text/plain; charset=nonsense\n\nM\xc3\xbcll",
        "Subject: Müll\n\nMüll".encode("utf-16"),
        b"Subject: M\xc3\xbcll\nContent-Type: multipart/mixed; boundary=x\n\nM\xc3\xbcll",
        b"From: @@<<>>;;:\nSubject: M\xc3\xbcll\nDate: never\nContent-Type: ;;;\n\nM\xc3\xbcll",
    ],
)
def test_a_message_that_breaks_the_rules_is_read_all_the_same(tmp_path: Path, raw: bytes) -> None:
    assert read(tmp_path, "a.eml", raw).text.endswith("Müll")


def test_a_message_without_words_has_no_text(tmp_path: Path) -> None:
    with pytest.raises(NoText):
        read(tmp_path, "a.eml", b"X-Nothing: 1\n\n\n")
