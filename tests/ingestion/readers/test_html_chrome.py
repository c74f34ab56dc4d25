"""ingestion.readers.html_chrome: what is around a page's content is in the text and in no passage."""

from pathlib import Path

import pytest

from ingestion.types import BlockKind, Extraction
from tests.ingestion.readers.reading import blocks, read

DOCUMENTS = Path(__file__).resolve().parents[4] / "shared" / "data" / "documents"
PROSE = "<p>The keeper lights the lamp at dusk, reads until midnight, and goes to bed at dawn.</p>"


def split(extraction: Extraction) -> tuple[list[str], list[str]]:
    """The texts of the content, and those around it."""
    content = [text for kind, text in blocks(extraction) if kind is not BlockKind.FURNITURE]
    return content, [text for kind, text in blocks(extraction) if kind is BlockKind.FURNITURE]


def of(tmp_path: Path, body: str) -> tuple[list[str], list[str]]:
    extraction = read(tmp_path, "a.html", f"<html><body>{body}</body></html>")
    assert "\ufdd0" not in extraction.text
    return split(extraction)


@pytest.mark.parametrize(
    "around",
    [
        "<nav><ul><li>Home</li></ul></nav>",
        '<div role="navigation"><p>Home</p></div>',
        '<div role="Banner"><p>Home</p></div>',
        '<div role="search"><p>Home</p></div>',
        "<header><p>Home</p></header>",
        '<div role="contentinfo"><p>Home</p></div>',
        '<ul><li><input type="checkbox" id="m"><label for="m" aria-hidden="true">Home</label></li></ul>',
        "<nav><h2>Home</h2></nav>",
        "<nav><table><tr><td>Home</td></tr></table></nav>",
    ],
)
def test_landmarks_around_the_content_are_furniture(tmp_path: Path, around: str) -> None:
    content, furniture = of(tmp_path, around + PROSE)

    assert (len(content), [text.removeprefix("[ ] ") for text in furniture]) == (1, ["Home"])


@pytest.mark.parametrize(
    "inside",
    [
        "<article><header><p>By the keeper</p></header></article>",
        "<section><header><p>By the keeper</p></header></section>",
        "<header><h1>Lights</h1><p>By the keeper</p></header>",
        '<p role="note">By the keeper</p>',
    ],
)
def test_headers_of_the_content_are_content(tmp_path: Path, inside: str) -> None:
    content, furniture = of(tmp_path, inside + PROSE)

    assert any("By the keeper" in text for text in content)
    assert furniture == []


def test_the_sites_header_is_furniture_where_the_page_has_a_heading_of_its_own(tmp_path: Path) -> None:
    content, furniture = of(tmp_path, f"<header><h1>Example Limited</h1></header><h1>Lights</h1>{PROSE}")

    assert content[0] == "Lights"
    assert furniture == ["Example Limited"]


def test_text_outside_the_main_landmark_is_furniture(tmp_path: Path) -> None:
    body = f'<a href="#c">Skip to content</a><main id="c"><h1>Lights</h1>{PROSE}</main><aside>More about us</aside>'

    content, furniture = of(tmp_path, body)

    assert content[0] == "Lights"
    assert furniture == ["Skip to content", "More about us"]


def test_a_main_landmark_with_little_of_the_text_decides_nothing(tmp_path: Path) -> None:
    content, furniture = of(
        tmp_path, f"<main><p>Ten words are in here, but the page has more of them.</p></main>{PROSE * 3}"
    )

    assert (len(content), furniture) == (4, [])


def test_a_list_of_languages_is_furniture_and_other_lists_of_links_are_not(tmp_path: Path) -> None:
    languages = "".join(f'<li><a hreflang="{code}" href="x">{code} text</a></li>' for code in ("de", "fr", "it"))
    links = "".join(f'<li><a href="x">{name}</a></li>' for name in ("Lamp", "Lens", "Tower"))

    content, furniture = of(tmp_path, f"{PROSE}<ul>{languages}</ul><ul>{links}</ul>")

    assert content[1:] == ["Lamp", "Lens", "Tower"]
    assert furniture == ["de text", "fr text", "it text"]


def test_a_page_of_navigation_alone_is_content(tmp_path: Path) -> None:
    assert of(tmp_path, "<nav><ul><li>Lamps</li><li>Lenses</li></ul></nav>") == (["Lamps", "Lenses"], [])


def test_nothing_but_the_marks_is_changed(tmp_path: Path) -> None:
    page = f'<nav><b>Go</b> home, <i>now</i><img alt="A lamp"></nav>{PROSE}<div role="menu">© 2024 Example</div>'
    plain = page.replace("nav>", "div>").replace(' role="menu"', "")

    assert read(tmp_path, "a.html", page).text == read(tmp_path, "b.html", plain).text


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the shared documents do not lie beside this checkout")
def test_an_encyclopedias_menus_and_languages_are_no_passages(tmp_path: Path) -> None:
    content, furniture = split(read(tmp_path, "a.html", (DOCUMENTS / "html" / "wiki_duck.html").read_bytes()))

    assert {"Jump to content", "Main page", "Random article", "Deutsch", "Français", "Create account"} <= set(furniture)
    assert not {"Jump to content", "Main page", "Deutsch", "Log in", "[ ] Main menu"} & set(content)
    assert content[0] == "Duck"
    assert any(text.startswith("Ducks eat food sources such as grasses") for text in content)
    assert sum(map(len, content)) > 4 * sum(map(len, furniture))
