"""Marks what is around the content of an HTML page: navigation, menus, banners, footers and lists of languages.

Landmarks are those of WAI-ARIA 1.2 §5.3.4 and the elements that HTML-AAM 1.0 §3.5 maps to them. Where a page has a main
landmark that holds most of its text, all text outside is around the content. Pages without landmarks keep all of it.
"""

from collections.abc import Iterator
from typing import Any

from ingestion.builder import mark_as_furniture

_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar", "tablist"})
_SCOPING = frozenset({"article", "aside", "main", "nav", "section"})  # a header or footer inside is theirs
_SCOPING_ROLES = frozenset({"article", "complementary", "main", "navigation", "region"})
_UNREAD = frozenset({"script", "style", "template", "noscript", "head"})
_LEAST_LANGUAGES = 3
_MEDIAWIKI = "interface"  # how MediaWiki marks what is no part of a page, such as its categories
_HIDDEN_WORDS = 8  # more words that are hidden from assistive technology may be a closed part of the content
_LEAST_WORDS = 10  # words outside, without which a page has nothing but what is marked
_MAIN_SHARE = 0.5  # of the words that no landmark takes
_SHOWN_ATTRIBUTES = ("alt", "placeholder", "value")
_FIELDS = frozenset({"input", "select", "textarea"})  # docling shows the name of one without a label


def mark_chrome(root: Any) -> None:
    """Mark the words in those parts of the tree `root` (lxml), in its texts and the attributes that are read as text.

    The blocks that consist of them become `furniture` (`TextBuilder.append`).
    """
    chrome = set(_chrome(root))
    words = {element: _own_words(element) for element in root.iter() if isinstance(element.tag, str)}
    outside = set(_descendants(root, chrome))
    mains = [element for element in outside if _role(element) == "main" or element.tag == "main"]
    if len(mains) == 1:
        inside = set(_descendants(mains[0], chrome))
        if sum(words[one] for one in inside) >= max(_LEAST_WORDS, _MAIN_SHARE * sum(words[one] for one in outside)):
            outside = inside
    if sum(words[one] for one in outside) < _LEAST_WORDS:
        return
    for element in words.keys() - outside:
        _mark(element)


def _chrome(root: Any) -> Iterator[Any]:
    """The elements that are around the content, with all they hold."""
    headed = sum(1 for _ in root.iter("h1"))
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        role = _role(element)
        if role in _ROLES or (not role and element.tag == "nav"):
            is_title = role == "banner" and sum(1 for _ in element.iter("h1")) == headed > 0
        elif not role and element.tag in {"header", "footer"} and not _is_scoped(element):
            is_title = sum(1 for _ in element.iter("h1")) == headed > 0
        else:
            if _is_hidden(element) or _lists_languages(element) or element.get("data-mw") == _MEDIAWIKI:
                yield element
            continue
        if not is_title:  # else the only first-rank heading is in it: it is the page's, not the site's
            yield element


def _role(element: Any) -> str:
    return (element.get("role") or "").strip().lower()


def _is_scoped(element: Any) -> bool:
    return any(above.tag in _SCOPING or _role(above) in _SCOPING_ROLES for above in element.iterancestors())


def _is_hidden(element: Any) -> bool:
    if (element.get("aria-hidden") or "").strip().lower() != "true":
        return False
    return len(" ".join(element.itertext()).split()) <= _HIDDEN_WORDS


def _lists_languages(element: Any) -> bool:
    """Whether each item of a list is a link to the page in another language."""
    if element.tag not in {"ul", "ol"}:
        return False
    languages = [[link.get("hreflang") for link in item.iter("a") if link.get("hreflang")] for item in element]
    named = {found[0].lower() for found in languages if found}
    return len(named) >= _LEAST_LANGUAGES and len(named) >= 0.8 * len(languages)


def _descendants(top: Any, without: set[Any]) -> Iterator[Any]:
    """`top` and the elements below it, but for those in `without` and below them."""
    waiting = [top]
    while waiting:
        element = waiting.pop()
        if isinstance(element.tag, str) and element not in without:
            yield element
            waiting.extend(element)


def _own_words(element: Any) -> int:
    """The number of words directly in an element."""
    if element.tag in _UNREAD:
        return 0
    return sum(len((text or "").split()) for text in (element.text, *(child.tail for child in element)))


def _mark(element: Any) -> None:
    """Mark the words directly in an element."""
    if element.tag in _UNREAD or element.tag == "title":
        return
    if element.text:
        element.text = mark_as_furniture(element.text)
    for child in element:
        if child.tail:
            child.tail = mark_as_furniture(child.tail)
    for name in (*_SHOWN_ATTRIBUTES, *(["name"] if element.tag in _FIELDS else [])):
        if element.get(name):
            element.set(name, mark_as_furniture(element.get(name)))
