"""The check of the patterns finds what is slow, knows what is not, and says what it could not read."""

import re
from types import ModuleType

import pytest

from tests.patterns.attacks import attacks
from tests.patterns.slow import slow_texts
from tests.patterns.sources import NotResolvedError, Use, uses_in

SLOW = [
    (r"(?:\s|<!--.*?-->|<\?xml[^>]*>)*<(?:html|head)[\s>/]", "match", re.I | re.S),  # comments before a page
    (r"^(?:(?:and|please|(?:can|could) you(?: please)?)\W+)*list\b", "search", re.I),
    (r"(?:(?:short|one-\w+|\w+-(?:word|line)) )*summary", "fullmatch", 0),
    (r"(a|aa)+$", "match", 0),
    (r"(?:a+)+b", "fullmatch", 0),
    (r"\s*$", "search", 0),
    (r"[ \t]+(?=\n)", "sub", 0),
    (r"\w+-\w+", "findall", 0),
    (r"\s*\|?\s*", "fullmatch", 0),
    (r".*[/\\]", "sub", 0),
    (r"<script>(.*?)</script>", "finditer", re.S),
    (r"compare .+? and .+", "search", 0),
    (r"(?=\S*\d)\w+", "finditer", 0),
    (rb"=\s*;?\s*x", "search", 0),
]
LINEAR = [
    (r"(?<!\s)\s++\Z", "search", 0),
    (r"(?:a|b)+$", "match", 0),
    (r"\[\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*\]", "finditer", 0),
    (r"\w+", "findall", 0),
    (r"(?<!\w)\w++-\w+", "findall", 0),
    (r"x{0,9}y", "search", 0),
]


@pytest.mark.parametrize(("pattern", "method", "flags"), SLOW)
def test_a_slow_pattern_is_found(pattern: str, method: str, flags: int) -> None:
    use = Use("here", re.compile(pattern, flags), frozenset({method}))

    (finding,) = slow_texts(use)
    assert finding.startswith("here: ")


@pytest.mark.parametrize(("pattern", "method", "flags"), LINEAR)
def test_a_linear_pattern_passes(pattern: str, method: str, flags: int) -> None:
    assert list(slow_texts(Use("here", re.compile(pattern, flags), frozenset({method})))) == []


def test_texts_repeat_each_body_behind_what_leads_to_it() -> None:
    texts = set(attacks(re.compile(r"key=(?:ab|cd)*;"), 40))

    assert "key=" + "ab" * 20 + "\x00" in texts
    assert "key=" + "cd" * 20 + "\x00" in texts
    assert "key=" * 10 + "\x00" in texts


MODULE = """
import re
A, B = re.compile(r"a+"), re.compile("b", flags=re.I)
WORDS = "x|y"
C = re.compile(rf"(?:{WORDS})+")
MANY = {word: re.compile(pattern) for word, pattern in (("d", "d"), ("e", "e"))}
def read(text, word):
    A.search(text)
    C.sub("", text)
    return re.match(rf"{re.escape(word)}\\s", text), any(one.fullmatch(text) for one in MANY.values())
"""


def module_from(source: str) -> ModuleType:
    module = ModuleType("example")
    exec(source, vars(module))
    return module


def test_every_call_is_found_with_its_pattern_and_its_methods() -> None:
    found: dict[str, tuple[object, int]] = {
        str(use.pattern.pattern): (use.methods, use.pattern.flags & re.I)
        for use in uses_in(MODULE, module_from(MODULE))
    }

    assert found == {
        "a+": ({"search"}, 0),
        "b": ({"fullmatch"}, re.I),
        "(?:x|y)+": ({"sub"}, 0),
        "d": ({"fullmatch"}, 0),
        "e": ({"fullmatch"}, 0),
        r"ab\s": ({"match"}, 0),
    }


@pytest.mark.parametrize("call", ["re.compile(self.pattern)", "re.search(box[0].text, 'x')", "re.sub(open, '', 'x')"])
def test_a_pattern_that_cannot_be_read_is_told(call: str) -> None:
    source = f"import re\ndef read(self, box):\n    return {call}\n"

    with pytest.raises(NotResolvedError, match=re.escape(call.split("(")[1].split(",", maxsplit=1)[0].rstrip(")"))):
        uses_in(source, module_from(source))
