"""app.answering.generating.wording: prompt files replace texts of the prompt, and faulty ones are refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.answering.generating.prompt_layout import build_prompt
from app.answering.generating.wording import STRONG, WRITER, Wording, read_wording
from app.answering.languages.table import REFUSAL
from app.answering.prompt import FENCE
from app.errors import SetupError
from tests.app.answering.test_prompt import CONTEXT, CharacterTokenizer

CLASSES = frozenset({"quotes", "writer", "strong"})


def read(file: Path, *, default: Wording = Wording(), table: str = "quotes") -> Wording:  # noqa: B008 - it is frozen
    return read_wording(file, default=default, table=table, tables=CLASSES)


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path):
    file = tmp_path / "prompt.toml"
    file.write_text('system = """\nAntworte aus den Quellen.\n"""\nquestion = "Frage:"\n', encoding="utf-8")
    wording = read(file)
    own, usual = (
        CharacterTokenizer().decode(
            build_prompt(CharacterTokenizer(), question="Warum?", context=CONTEXT, wording=chosen).ids
        )
        for chosen in (wording, Wording())
    )

    assert wording == Wording(system="Antworte aus den Quellen.", question="Frage:")
    assert own.startswith("Antworte aus den Quellen.")
    assert own.endswith("Frage: Warum?")
    assert Wording().reminder in own
    assert own[own.index("Sources:") : own.index("Frage:")] == usual[usual.index("Sources:") : usual.index("Question:")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"system = ", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b'sytem = "x"', "has 'sytem'; known are conversation, highlights, pointer,"),
        (b"system = 3", "system must be a text"),
        (b"[writer]\nsytem = 'x'", r"\[writer\] has 'sytem'"),
        (b"writer = 'x'", "writer must be a table"),
        (b"[other]\nsystem = 'x'", "has 'other'"),
        (b'system = "' + b"x" * 4001 + b'"', "system must be a text of at most 4000"),
    ],
)
def test_a_file_that_is_no_wording_says_what_is_wrong(tmp_path, content, message):
    (tmp_path / "prompt.toml").write_bytes(content)

    with pytest.raises(SetupError, match=message):
        read(tmp_path / "prompt.toml")


def test_a_missing_file_is_named_without_its_folder(tmp_path):
    with pytest.raises(SetupError, match=r"prompt\.toml cannot be read") as caught:
        read(tmp_path / "gone" / "prompt.toml")

    assert str(tmp_path) not in str(caught.value)


def test_a_table_changes_the_texts_of_one_class_and_an_empty_text_is_left_out(tmp_path):
    file = tmp_path / "prompt.toml"
    file.write_text(
        'question = "Q:"\nreminder = ""\n[writer]\nsystem = "Word it."\nquestion = "W:"\n', encoding="utf-8"
    )

    assert read(file, default=WRITER, table="writer") == replace(WRITER, system="Word it.", question="W:")
    assert read(file, default=STRONG, table="strong") == replace(STRONG, question="Q:")
    assert read(file) == Wording(question="Q:", reminder="")
    text = CharacterTokenizer().decode(
        build_prompt(CharacterTokenizer(), question="Why?", context=CONTEXT, wording=read(file)).ids
    )
    assert text.endswith(f"{FENCE}\n\nQ: Why?")


@pytest.mark.parametrize("wording", [WRITER, STRONG])
def test_a_better_model_is_asked_to_refuse_in_the_questions_language(wording: Wording) -> None:
    assert wording.system_for("Wann wurde das Werk geschlossen?").count("Ich weiß es nicht.") == 1
    assert wording.refusal_for("Wann wurde das Werk geschlossen?") == "Ich weiß es nicht."
    assert "{" not in wording.system_for("When?")
    assert Wording().refusal_for("Wann wurde das Werk geschlossen?") == REFUSAL
