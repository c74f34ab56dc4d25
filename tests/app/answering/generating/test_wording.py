"""app.answering.generating.wording: prompt files replace texts of the prompt, and faulty ones are refused."""

import pytest

from app.answering.generating.prompt_layout import build_prompt
from app.answering.generating.wording import Wording, read_wording
from app.errors import SetupError
from tests.app.answering.test_prompt import CONTEXT, CharacterTokenizer


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path):
    file = tmp_path / "prompt.toml"
    file.write_text('system = """\nAntworte aus den Quellen.\n"""\nquestion = "Frage:"\n', encoding="utf-8")
    wording = read_wording(file)
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
        (b'sytem = "x"', "has 'sytem'; known are highlights, pointer,"),
        (b"system = 3", "system must be a text"),
        (b'system = "  "', "system must be a text"),
        (b'system = "' + b"x" * 4001 + b'"', "system must be a text of 1 to 4000"),
    ],
)
def test_a_file_that_is_no_wording_says_what_is_wrong(tmp_path, content, message):
    (tmp_path / "prompt.toml").write_bytes(content)

    with pytest.raises(SetupError, match=message):
        read_wording(tmp_path / "prompt.toml")


def test_a_missing_file_is_named_without_its_folder(tmp_path):
    with pytest.raises(SetupError, match=r"prompt\.toml cannot be read") as caught:
        read_wording(tmp_path / "gone" / "prompt.toml")

    assert str(tmp_path) not in str(caught.value)
