r"""Writes a document's text so that Markdown shows it as it is, and none of it reaches into the quotes behind it.

A comment of HTML or a fence of code would swallow what follows, and a link or an image would be the document's, not the
answer's. Emphasis and short spans of code keep their meaning: they end with their paragraph.

Example:
    >>> literal("<!-- The plan costs `a < b` euros, [see](https://example.org).")
    '\\<!-- The plan costs `a < b` euros, [see\\](https://example.org).'
"""

import re

# A span of code, in which nothing is a mark; then what begins HTML (CommonMark 0.31, 4.6 and 6.6), a fence, and the
# bracket that makes a text a link, an image, or the definition of a link.
_MARKS = re.compile(r"(?<![\\`])(`{1,2})(?!`)[^`\n]+\1(?!`)|<(?=[A-Za-z/!?])|[`~]{3,}|\](?=[(\[:])")


def literal(text: str) -> str:
    """`text` with a backslash before each mark that is more than emphasis."""
    return _MARKS.sub(lambda mark: mark.group() if mark.group(1) else f"\\{mark.group()}", text)
