"""app.answering.prompt: the metered parts of a prompt add up to the whole prompt."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.generating.prompt_layout import (
    DEFAULT_WORDING,
    build_prompt,
    build_summary_prompt,
    conversation,
    fence_tokens,
    shown,
)
from app.answering.generating.wording import WRITER
from app.answering.prompt import FENCE, quoted
from app.answering.question import Message
from retrieval.highlights import highlights
from retrieval.types import Context
from tests.app.answering.generating.test_footnote_writer import SOURCES


class CharacterTokenizer:
    """A `Tokenizer` with one token per character, and template ids no text can produce."""

    def encode(self, text: str) -> list[int]:
        return [ord(char) for char in text]

    def count(self, text: str) -> int:
        return len(text)

    def decode(self, ids) -> str:
        return "".join(chr(token) for token in ids if token >= 0)

    def piece(self, token_id: int) -> bytes:
        return chr(token_id).encode() if token_id >= 0 else b""

    def chat_frame(self, roles) -> tuple[tuple[int, ...], ...]:
        return tuple((-1 - place,) for place in range(len(roles) + 1))


QUESTION = "How did revenue develop?"
CONTEXT = Context(sources=SOURCES, dropped=(), tokens=sum(len(s.header) + len(s.body) for s in SOURCES))
EMPTY = Context(sources=(), dropped=(), tokens=0)
turns = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(max_size=20)), max_size=4)


@given(question=st.text(min_size=1, max_size=50), history=turns, instructions=st.text(max_size=20))
def test_the_sum_of_the_components_is_the_prompt(question, history, instructions):
    prompt = build_prompt(
        CharacterTokenizer(), question=question, context=CONTEXT, history=history, instructions=instructions
    )
    parts = prompt.components

    assert parts.total == len(prompt.ids)
    assert parts.question == len(question)
    assert parts.history == sum(len(message.content) for message in history)
    assert parts.context == CONTEXT.tokens == sum(share.tokens for share in prompt.shares(CONTEXT))


@given(question=st.text(min_size=1, max_size=50), history=turns)
def test_the_prompt_reads_as_the_template_with_every_part_in_its_place(question, history):
    prompt = build_prompt(CharacterTokenizer(), question=question, context=CONTEXT, history=history)
    frame = [token for token in prompt.ids if token < 0]
    text = CharacterTokenizer().decode(prompt.ids)

    assert frame == [-1 - place for place in range(len(history) + 3)]
    assert text.endswith(f"Question: {question}")
    assert 'Sources:\n\n"""\n[1] report.pdf\n' in text
    assert text.index("[1] report.pdf\n") < text.index("[2] report.pdf\n")


@given(question=st.text(min_size=1, max_size=50), history=turns)
def test_a_conversation_that_is_quoted_stands_behind_the_sources(question, history):
    tokenizer = CharacterTokenizer()
    one_refusal = replace(WRITER, system="Answer.")  # the refusal's language is the question's
    prompt, first = (
        build_prompt(tokenizer, question=asked, context=CONTEXT, history=said, wording=one_refusal)
        for asked, said in ((question, history), ("Why?", ()))
    )
    stop = prompt.sources[-1][1]

    assert prompt.ids[:stop] == first.ids[:stop]  # what a cache keeps of the first question's prompt
    assert [token for token in prompt.ids if token < 0] == [-1, -2, -3]
    assert prompt.components.total == len(prompt.ids)
    assert prompt.components.history == sum(len(piece) for kind, piece in conversation(history) if kind == "history")
    assert (WRITER.conversation in tokenizer.decode(prompt.ids)) is bool(history)
    assert tokenizer.decode(prompt.ids).endswith(f"Question: {question}")


def test_a_prompt_without_sources_keeps_turns_as_turns():
    history = (Message("user", "Who?"), Message("assistant", "Ada."))
    prompt = build_prompt(
        CharacterTokenizer(), question="When?", context=EMPTY, history=history, grounded=False, wording=WRITER
    )

    assert [token for token in prompt.ids if token < 0] == [-1, -2, -3, -4, -5]


@given(text=st.text(alphabet='"\n x', max_size=30))
def test_a_document_cannot_end_its_own_quotation(text):
    tokenizer = CharacterTokenizer()
    source = replace(SOURCES[0], body=f"{text}\n")
    prompt = build_prompt(tokenizer, question="Why?", context=Context((source,), (), 0))
    start, stop = prompt.sources[0]
    rest = tokenizer.decode(prompt.ids[start:])

    assert FENCE not in quoted(text)
    assert tokenizer.decode(prompt.ids[start:stop]) == quoted(source.body)
    assert rest.startswith(f"{quoted(source.body)}{FENCE}\n\n{DEFAULT_WORDING.reminder}\n\nQuestion: Why?")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Net sales      1,204     1,108", "Net sales 1,204 1,108"),
        ("def f():\n    return 1   \n\n\n\nf()", "def f():\n    return 1\n\nf()"),
        ("one two\n\nthree", "one two\n\nthree"),
    ],
)
def test_white_space_that_says_nothing_is_not_paid_for(text, shown):
    assert quoted(text) == shown


def test_what_matters_most_stands_behind_all_that_documents_say():
    text = CharacterTokenizer().decode(build_prompt(CharacterTokenizer(), question="Why?", context=CONTEXT).ids)

    assert text.rindex(SOURCES[-1].body) < text.index(DEFAULT_WORDING.reminder) < text.index("Question: ")


def test_a_source_is_shown_as_it_is_counted():
    tokenizer = CharacterTokenizer()
    source = SOURCES[0]
    ids = shown(tokenizer, header=source.header, body=source.body)
    prompt = build_prompt(tokenizer, question="Why?", context=CONTEXT)

    assert list(prompt.ids[len(prompt.head) :][: len(ids)]) == ids
    assert len(ids) == len(source.header) + len(source.body) + fence_tokens(tokenizer)


def test_highlights_are_read_behind_the_question_and_billed_to_their_document():
    tokenizer = CharacterTokenizer()
    again = highlights(SOURCES, query=QUESTION, budget=500, count_tokens=len, most=1)
    prompt = build_prompt(tokenizer, question=QUESTION, context=CONTEXT, highlights=again)
    text = tokenizer.decode(prompt.ids)

    assert text.endswith(f'Sentences to look at again:\n"""\n{again[0].line}"""\n')
    assert text.index(f"Question: {QUESTION}") < text.rindex(again[0].line)
    assert prompt.components.context == CONTEXT.tokens + len(again[0].line)
    assert sum(share.tokens for share in prompt.shares(CONTEXT)) == prompt.components.context
    assert prompt.components.total == len(prompt.ids)


def test_a_prompt_without_sources_does_not_speak_of_them():
    prompt = build_prompt(CharacterTokenizer(), question="Why?", context=EMPTY, grounded=False)

    assert "ource" not in CharacterTokenizer().decode(prompt.ids)
    assert prompt.components.context == 0
    assert prompt.shares(EMPTY) == ()


def test_the_context_is_billed_to_its_documents():
    (share,) = build_prompt(CharacterTokenizer(), question="Why?", context=CONTEXT).shares(CONTEXT)

    assert (share.document_id, share.chunks) == ("doc_1", 2)


@given(question=st.text(min_size=1, max_size=50), history=turns)
def test_the_spans_of_the_sources_hold_their_own_text_without_headers(question, history):
    prompt = build_prompt(CharacterTokenizer(), question=question, context=CONTEXT, history=history)

    assert [CharacterTokenizer().decode(prompt.ids[start:stop]) for start, stop in prompt.sources] == [
        source.body for source in SOURCES
    ]


def test_a_prompt_for_json_shows_the_schema_and_asks_for_no_markers():
    schema = '{"type": "object"}'
    with_sources, without = (
        CharacterTokenizer().decode(
            build_prompt(
                CharacterTokenizer(), question="Why?", context=context, grounded=grounded, json_schema=schema
            ).ids
        )
        for context, grounded in ((CONTEXT, True), (EMPTY, False))
    )

    assert schema in with_sources
    assert schema in without
    assert "brackets" not in with_sources
    assert "ource" not in without


def test_the_head_is_what_stands_before_the_first_source() -> None:
    tokenizer = CharacterTokenizer()
    prompt = build_prompt(tokenizer, question="What?", context=CONTEXT)
    empty = build_prompt(tokenizer, question="Else?", context=Context((), (), 0))

    assert prompt.head == empty.head == prompt.ids[: prompt.sources[0][0] - len('"""\n' + SOURCES[0].header)]
    with pytest.raises(AssertionError):
        _ = build_prompt(tokenizer, question="Hi", context=Context((), (), 0), grounded=False).head


@given(question=st.text(min_size=1, max_size=50), passage=st.text(min_size=1, max_size=50))
def test_a_summarys_prompt_is_its_parts_and_names_whose_text_it_shows(question, passage):
    tokenizer = CharacterTokenizer()
    prompt = build_summary_prompt(tokenizer, question=question, passage=passage, document_id="doc_1")
    parts = prompt.components

    assert parts.total == len(prompt.ids)
    assert (parts.context, parts.question, parts.history) == (len(quoted(passage)), len(question), 0)
    ((start, stop),) = prompt.sources
    assert tokenizer.decode(prompt.ids[start:stop]) == quoted(passage)
    assert {segment.document_id for segment in prompt.segments if segment.body} == {"doc_1"}
    assert [token for token in prompt.ids if token < 0] == [-1, -2, -3]
