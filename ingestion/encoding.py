"""Decodes text of any encoding: by proof in the bytes, then by declaration, then by detection."""

import codecs
import re

from ingestion.errors import Malformed

_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ISO_2022 = re.compile(rb"\x1b\$(?:[@BA]|\([CD])")  # RFC 1468, RFC 1557: escapes into a double-byte set
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*+=\s*+["']?\s*+([A-Za-z0-9_.:-]{2,40})""")
# Control characters absent from text files: all but escape (ISO 2022), shift in and out, and blanks.
_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\v\f\r\x0e\x0f\x1a\x1b")) + b"\x7f"
# Labels as the web uses them: each means the superset that browsers decode with (Encoding Standard §4.2).
_LABELS = {
    "x-sjis": "cp932", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "windows-31j": "cp932",
    "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-9": "cp1254",
    "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "big5": "big5hkscs", "x-x-big5": "big5hkscs",
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "windows-949": "cp949", "tis-620": "cp874", "windows-874": "cp874",
    "x-mac-cyrillic": "mac_cyrillic", "macintosh": "mac_roman", "x-euc-jp": "euc_jp", "iso-8859-8-i": "iso8859-8",
}  # fmt: skip
_GUESS_BYTES = 1 << 18  # enough to detect an encoding; detection takes seconds per megabyte


def wide_encoding(head: bytes) -> str | None:
    """The UTF-16 or UTF-32 encoding of bytes that begin with its mark, or plainly alternate with zeros."""
    for mark, name in _MARKS:
        if head.startswith(mark) and name != "utf-8-sig":
            return name
    quarter = len(head) // 4
    if quarter < 2 or b"\0" not in head:
        return None
    zeros = [head[lane : quarter * 4 : 4].count(0) / quarter for lane in range(4)]
    wide = {  # byte lanes of four: all zero, or often zero, for Latin letters
        "utf-32-le": min(zeros[1:]) > 0.9 and zeros[0] < 0.1,
        "utf-32-be": min(zeros[:2]) > 0.9 and zeros[3] < 0.1,
        "utf-16-le": min(zeros[1], zeros[3]) > 0.3 and max(zeros[0], zeros[2]) < 0.05,
        "utf-16-be": min(zeros[0], zeros[2]) > 0.3 and max(zeros[1], zeros[3]) < 0.05,
    }
    return next((name for name, fits in wide.items() if fits), None)


def starts_text(head: bytes) -> bool:
    """Whether a file that begins with `head` is text in some encoding: marked, wide, or free of control bytes."""
    if wide_encoding(head):
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return b"\0" not in head and controls * 100 <= len(head)


def decode(data: bytes) -> str:
    """The text of `data`: byte order mark, strict UTF-8, the encoding it declares, then a statistical guess.

    A declaration is `charset=` or `encoding=` within the first 1024 bytes (HTML Standard §13.2.3.2).
    UTF-8 goes before it because bytes that happen to be valid UTF-8 practically always are.
    A few broken bytes in UTF-8 become U+FFFD.

    Raises:
        Malformed: No encoding makes text of it.
    """
    wide = wide_encoding(data[:8192])
    if wide:
        return data.decode(wide, errors="replace")
    if _ISO_2022.search(data[:_GUESS_BYTES]):
        for name in ("iso2022_jp_2", "iso2022_jp_3", "iso2022_kr"):
            if (text := _try(data, name)) is not None:
                return text
    text = _try(data, "utf-8-sig")
    if text is not None:
        return text
    declared = _DECLARED.search(data[:1024])
    if declared:
        label = declared[1].decode("ascii").lower()
        text = _try(data, _LABELS.get(label, label))
        if text is not None:
            return text
    return _mostly_utf_8(data) or _guess(data)


def _try(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)  # LookupError too for codecs that are no encodings of text, such as `zip`
    except (LookupError, UnicodeError):
        return None


def _mostly_utf_8(data: bytes) -> str | None:
    text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    foreign = sum(map(len, re.findall(r"[^\x00-\x7f\ufffd]+", text)))
    return text if broken * 10 <= foreign else None


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    found = list(from_bytes(data[:_GUESS_BYTES]))
    if not found:
        raise Malformed("The text is in an encoding we do not recognise; save it as UTF-8.")
    # Its best match is the first of several equally clean ones; the language decides between them.
    clean = [match for match in found if match.chaos <= found[0].chaos + 0.01]
    return data.decode(max(clean, key=lambda match: match.coherence).encoding, errors="replace")
