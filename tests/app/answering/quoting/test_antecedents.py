"""app.answering.quoting.antecedents: a quote that begins with a pronoun says whom or what it speaks of."""

from dataclasses import replace

import pytest

from app.answering.quoting.antecedents import with_antecedents
from app.answering.states.reading import Extract
from retrieval.types import Source, Span
from tests.app.answering.sources import source

BARBARIANS = "Barbarians are warriors of the hinterland. "


def quote(of: Source, text: str) -> Extract:
    at = of.hit.chunk.start_char + of.hit.chunk.text.index(text)
    return Extract(of, Span(at, at + len(text)), text, 0.5)


@pytest.mark.parametrize(
    ("before", "text", "shown"),
    [
        (BARBARIANS, "They carry a sword.", f"{BARBARIANS}They carry a sword."),
        (BARBARIANS, "Their sword is great.", f"{BARBARIANS}Their sword is great."),
        ("Kings rule. Mira is a monk. ", "She has no armor.", "Mira is a monk. She has no armor."),
        (BARBARIANS, "Knights carry a sword.", "Knights carry a sword."),
        (BARBARIANS, "It is known that swords cut.", "It is known that swords cut."),
        ("Barbarians are warriors.\n\n", "They carry a sword.", "They carry a sword."),
        ("Barbarians\n", "They carry a sword.", "They carry a sword."),
        ("Role | Sword.\n", "They carry a sword.", "They carry a sword."),
        (f"Barbarians {'very ' * 80}often fight. ", "They carry a sword.", "They carry a sword."),
        ("", "They carry a sword.", "They carry a sword."),
    ],
)
def test_the_sentence_before_belongs_to_a_quote_that_begins_with_a_pronoun(before: str, text: str, shown: str) -> None:
    found = source(f"{before}{text} Healers carry none.", start=50)

    (widened,) = with_antecedents([quote(found, text)])

    assert widened.text == shown
    assert found.hit.chunk.text[widened.span.start_char - 50 : widened.span.end_char - 50] == shown


def test_no_sentence_is_quoted_twice() -> None:
    found = source(f"{BARBARIANS}They carry a sword.")
    quotes = (quote(found, "They carry a sword."), quote(found, BARBARIANS.strip()))

    assert with_antecedents(quotes) == quotes


def test_a_sentence_that_was_not_read_is_not_quoted() -> None:
    found = source(f"{BARBARIANS}They carry a sword.")
    kept = replace(found, spans=(Span(len(BARBARIANS), len(found.hit.chunk.text)),))

    assert [one.text for one in with_antecedents([quote(kept, "They carry a sword.")])] == ["They carry a sword."]
