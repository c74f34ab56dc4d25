"""Server-sent events by the letter of the standard (WHATWG HTML, section 9.2.6): the reference for readers and writers.

It is slow, reads a whole stream at once, and shares no code with what it judges.
"""


def events_in(stream: bytes) -> list[tuple[str, str]]:
    """(type, data) of each event that a browser would dispatch."""
    text = stream.decode("utf-8", errors="replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    found: list[tuple[str, str]] = []
    data, event_type = "", ""
    for line in _complete_lines(text):
        if line == "":
            if data != "":
                found.append((event_type or "message", data[:-1]))  # without the last line feed
            data, event_type = "", ""
            continue
        field, value = _field(line)
        if field == "event":
            event_type = value
        elif field == "data":
            data += value + "\n"
    return found


def _complete_lines(text: str) -> list[str]:
    """The lines that have an end: CRLF, LF or CR, and no other character."""
    lines, line, at = [], "", 0
    while at < len(text):
        if text[at] not in "\r\n":
            line += text[at]
            at += 1
            continue
        at += 2 if text[at : at + 2] == "\r\n" else 1
        lines.append(line)
        line = ""
    return lines


def _field(line: str) -> tuple[str, str]:
    """Name and value of a line; a comment has an empty name."""
    if ":" not in line:
        return line, ""
    at = line.index(":")
    value = line[at + 1 :]
    return line[:at], value[1:] if value.startswith(" ") else value
