"""Under the citation constraint every marker names a presented source, and free text stays free."""

import random
import re
from collections.abc import Collection
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.citation_grammar import BEGINNING, CitationGrammar, walk
from generation.constraints import ConstraintCompiler, TokenConstraint
from generation.tokenizer import ChatTokenizer
from generation.types import CitationMarkers
from generation.vocabulary import token_bytes
from retrieval.footnote_numbers import MARKER, MARKER_START
from tests.examples import examples
from tests.generation.test_default_model import MODEL
from tests.generation.tiny import tiny_tokenizer


@cache
def tiny() -> tuple[ChatTokenizer, ConstraintCompiler]:
    tokenizer = ChatTokenizer(tiny_tokenizer())
    return tokenizer, ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids, vocab_size=tokenizer.vocab_size)


def reads(text: str, *, sources: int) -> bool:
    """Whether `text` may be written, byte by byte, closed brackets or not."""
    return walk(BEGINNING, text.encode(), sources=sources) is not None


def allowed(constraint: TokenConstraint) -> list[int]:
    mask = constraint.mask()
    assert mask is not None
    ids: list[int] = mask.nonzero()[:, 0].tolist()
    return ids


def take(constraint: TokenConstraint, tokenizer: ChatTokenizer, text: str) -> TokenConstraint:
    for token in tokenizer.encode(text):
        constraint.advance(token)
    return constraint


def numbers(text: str) -> list[int]:
    """What Footnote reads as cited in `text`."""
    return [int(number) for marker in MARKER.finditer(text) for number in re.findall(r"\d+", marker[1])]


@cache
def marked(tokenizer: ChatTokenizer) -> tuple[int, ...]:
    """Ids that hold a bracket or what can stand in one."""
    spelt = token_bytes(tokenizer.definition, size=tokenizer.vocab_size)
    return tuple(token for token, text in enumerate(spelt) if text and set(b"[]0123456789,;") & set(text))


def random_walk(
    tokenizer: ChatTokenizer, constraint: TokenConstraint, *, marked: Collection[int], draw: random.Random, steps: int
) -> str:
    """Text of tokens drawn under the mask, mostly `marked` ones."""
    ids: list[int] = []
    for _ in range(steps):
        mask = constraint.mask()
        assert mask is not None
        preferred, choices = [token for token in marked if mask[token]], mask.nonzero()[:, 0]
        assert len(choices), "the mask leaves nothing"
        hurry = preferred and draw.random() < 0.7
        token = draw.choice(preferred) if hurry else int(choices[draw.randrange(len(choices))])
        constraint.advance(token)
        ids.append(token)
    return tokenizer.decode(ids)


def assert_no_marker_dangles(text: str, *, sources: int) -> None:
    prose = re.sub(r"```.*?(?:```|\Z)", "", text, flags=re.DOTALL)  # in a code block everything is code
    assert all(1 <= number <= sources for number in numbers(prose))
    rest = MARKER.sub("", prose)
    for opened in re.finditer(r"\[", rest):  # text, or the marker the text was cut off in
        assert re.match(r"\[[A-Za-z\"'.]", rest[opened.start() :]) or MARKER_START.match(rest, opened.start()), text


@settings(max_examples=examples(60), deadline=None)
@given(sources=st.integers(0, 120), seed=st.integers(0, 2**32))
def test_no_random_walk_writes_a_marker_that_dangles(sources: int, seed: int) -> None:
    tokenizer, compiler = tiny()
    constraint = compiler.compile(CitationMarkers(sources))
    text = random_walk(tokenizer, constraint, marked=marked(tokenizer), draw=random.Random(seed), steps=60)

    assert_no_marker_dangles(text, sources=sources)


def test_random_walks_under_the_constraint_do_write_markers() -> None:
    tokenizer, compiler = tiny()
    text = random_walk(
        tokenizer,
        compiler.compile(CitationMarkers(12)),
        marked=tokenizer.encode("[1]23"),
        draw=random.Random(1),
        steps=600,
    )

    assert {1, 2, 3, 11, 12} <= set(numbers(text)) <= set(range(1, 13))


@pytest.mark.skipif(not MODEL.is_dir(), reason="the default generator is not installed here")
def test_no_random_walk_over_the_default_vocabulary_writes_a_marker_that_dangles() -> None:
    tokenizer = ChatTokenizer.load(str(MODEL))
    compiler = ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids | {0}, vocab_size=tokenizer.vocab_size)
    brackets = [token for token in marked(tokenizer) if {"[", "]"} & set(tokenizer.decode([token]))]
    brackets += tokenizer.encode("[1]2, 3") * 8
    cited: set[int] = set()
    for sources in (0, 4, 40):
        constraint, draw = compiler.compile(CitationMarkers(sources)), random.Random(sources)
        text = random_walk(tokenizer, constraint, marked=brackets, draw=draw, steps=80)
        assert_no_marker_dangles(text, sources=sources)
        cited |= set(numbers(text))

    assert cited


@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="["), max_size=60), n=st.integers(0, 9))
def test_text_without_an_opening_bracket_is_never_restricted(text: str, n: int) -> None:
    tokenizer, compiler = tiny()
    constraint = compiler.compile(CitationMarkers(n))
    for token in tokenizer.encode(text):
        assert constraint.allows(token)
        constraint.advance(token)

    speaks = n == 0 or any((char.isascii() and char.isalnum()) or not char.isascii() for char in text)
    assert all(constraint.allows(token) == speaks for token in tokenizer.eos_ids)


@given(text=st.text(alphabet="[] 0123,;a`\n", max_size=12), sources=st.integers(0, 3))
def test_the_mask_is_what_the_automaton_says_of_every_token(text: str, sources: int) -> None:
    tokenizer, compiler = tiny()
    place = walk(BEGINNING, text.encode(), sources=sources)
    constraint = compiler.compile(CitationMarkers(sources))
    if place is None:
        return
    take(constraint, tokenizer, text)
    mask = constraint.mask()
    assert mask is not None

    for token in range(tokenizer.vocab_size):
        assert bool(mask[token]) == constraint.allows(token)
        piece = tokenizer.decode([token])
        if piece and piece.isascii():
            assert bool(mask[token]) == reads(text + piece, sources=sources), piece


@given(
    text=st.text(alphabet="[] 01,a`\n", max_size=12),
    piece=st.text(alphabet="[] 01,;aé`.\n", min_size=1, max_size=5),
    sources=st.integers(0, 3),
)
def test_a_token_moves_the_place_as_its_bytes_do_one_by_one(text: str, piece: str, sources: int) -> None:
    place = walk(BEGINNING, text.encode(), sources=sources)
    if place is not None:
        grammar = CitationGrammar([piece.encode()])

        assert grammar.advance(place, 0, sources=sources) == walk(place, piece.encode(), sources=sources)


@given(text=st.text(alphabet="[] 0123,;a`.\n", max_size=30), sources=st.integers(1, 30))
def test_whatever_closes_is_a_marker_that_footnote_reads(text: str, sources: int) -> None:
    if reads(text, sources=sources):
        assert_no_marker_dangles(text, sources=sources)


@pytest.mark.parametrize(
    "text",
    ["[1]", "[12]", "[1, 2]", "[1,2;3]", "[ 1 ]", "[1][2]", " [3].\n- b [4]", ".\n[4]", " [1], [2]", "] y", "［99］"],
)
def test_markers_of_presented_sources_may_be_written_behind_words(text: str) -> None:
    place = walk(BEGINNING, f"a{text}".encode(), sources=12)

    assert place is not None
    assert place.length == 0


@pytest.mark.parametrize("text", ["[1]", " [1]", "- [1]", "* a [1]\n* [2]", "a [1]. [2]", "| a [1] | [2] |"])
def test_a_marker_without_words_before_it_is_forbidden(text: str) -> None:
    assert not reads(text, sources=12)


@pytest.mark.parametrize("text", ["a [sic] b", "a [the plant] b", 'a ["b"] c', "a [...] b [2]"])
def test_a_bracket_before_text_is_text(text: str) -> None:
    assert reads(text, sources=2)


@pytest.mark.parametrize("text", ["```\na[7] = [0]\n```", "Code:\n```py\nx[99]\n```\nSo x [1].", "```[```a [2]"])
def test_everything_in_a_code_block_is_code(text: str) -> None:
    assert reads(text, sources=2)
    assert not reads(f"{text.replace('```', '')} [99]", sources=2)


def test_an_answer_does_not_end_before_it_has_said_anything() -> None:
    tokenizer, compiler = tiny()
    special = [token for token in range(tokenizer.vocab_size) if not tokenizer.decode([token])]
    constraint = compiler.compile(CitationMarkers(3))

    assert not any(constraint.allows(token) for token in special)
    assert not any(take(constraint, tokenizer, " .\n").allows(token) for token in special)
    assert all(take(constraint, tokenizer, "12").allows(token) for token in special)
    assert all(compiler.compile(CitationMarkers(0)).allows(token) for token in special)


@pytest.mark.parametrize(
    "text", ["[13", "[0", "[01", "[]", "[ ]", "[é", "[\u2003", "[1 2", "[1,]", "[1,,2", "[[", "[1\n", "[-1", "[1.0"]
)
def test_malformed_or_unpresented_markers_are_forbidden(text: str) -> None:
    assert not reads(f"a{text}", sources=12)


def test_a_marker_stays_short_enough_to_be_shown_as_one() -> None:
    longest = "a[1, 2, 3, 4, 5, 6, 7, 8, 9"  # 25 bytes follow the bracket: one too many

    assert reads(longest[:-1].rstrip(", "), sources=9)
    assert not reads(longest, sources=9)
    assert not reads("a[1" + "," + " " * 23, sources=9)  # no room is left for the number that must come


def test_a_sequence_cannot_end_inside_a_bracket() -> None:
    tokenizer, compiler = tiny()
    constraint = take(compiler.compile(CitationMarkers(3)), tokenizer, "so [1")
    special = [token for token in range(tokenizer.vocab_size) if not tokenizer.decode([token])]

    assert tokenizer.eos_ids <= set(special)
    assert not any(constraint.allows(token) for token in special)
    assert all(take(constraint, tokenizer, "]").allows(token) for token in special)


def test_without_sources_no_bracket_opens() -> None:
    tokenizer, compiler = tiny()
    constraint = compiler.compile(CitationMarkers(0))

    assert not any("[" in tokenizer.decode([token]) for token in allowed(constraint))


def test_a_clone_looks_ahead_without_moving_the_sequence() -> None:
    tokenizer, compiler = tiny()
    constraint = take(compiler.compile(CitationMarkers(3)), tokenizer, "a[")
    before = allowed(constraint)
    ahead = take(constraint.clone(), tokenizer, "2]")

    assert allowed(constraint) == before
    assert len(allowed(ahead)) > len(before)


def test_advancing_over_a_forbidden_token_raises_assertion_error() -> None:
    tokenizer, compiler = tiny()
    constraint = compiler.compile(CitationMarkers(3))

    with pytest.raises(AssertionError, match="forbids"):
        take(constraint, tokenizer, "a[4")


def test_masks_of_one_place_are_computed_once() -> None:
    tokenizer, compiler = tiny()
    first, second = (take(compiler.compile(CitationMarkers(3)), tokenizer, text) for text in ("ab [1", "no [1"))

    assert first.mask() is second.mask()


def test_a_vocabulary_that_cannot_spell_markers_opens_none() -> None:
    pieces = [b"[", b"a", None, *(b"%d" % digit for digit in range(10))]

    assert CitationGrammar([*pieces, b"]"]).sources(5) == 5
    assert CitationGrammar(pieces).sources(5) == 0


def test_numbers_have_at_most_three_digits() -> None:
    _, compiler = tiny()
    tokenizer, _ = tiny()
    constraint = take(compiler.compile(CitationMarkers(5000)), tokenizer, "a[999")

    assert [tokenizer.decode([token]) for token in allowed(constraint) if "0" in tokenizer.decode([token])] == []
