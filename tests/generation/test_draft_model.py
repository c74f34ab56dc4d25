"""generation.draft_model proposes what the draft model would generate, whatever was accepted before."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import MambaConfig, MambaForCausalLM, PreTrainedModel

from generation.draft_model import DraftModel
from generation.errors import ModelUnavailable
from tests.generation.tiny import VOCAB, tiny_model, tiny_tokenizer

FAMILIES = ["llama", "mistral", "gemma2"]  # full attention, a sliding window of 11, and both


@pytest.fixture(scope="module", params=FAMILIES)
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    return tiny_model(request.param, attention="eager" if request.param == "gemma2" else "sdpa")


def greedy(model: PreTrainedModel, ids: list[int], count: int) -> list[int]:
    prompt = torch.tensor([ids])
    output = model.generate(  # type: ignore[operator]
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False, eos_token_id=None
    )
    return [int(token) for token in output[0, len(ids) :]]


@settings(max_examples=8, deadline=None)
@given(
    prompt=st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=20),
    history=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=2)),
        min_size=1,
        max_size=4,
    ),
)
def test_proposals_are_greedy_generation_after_any_history(model, prompt, history):
    drafter = DraftModel(model, vocab_size=VOCAB).drafter(prompt)
    tokens = list(prompt)
    for limit, accepted, others in history:
        draft = drafter.propose(limit)

        assert draft == (greedy(model, tokens, limit) if limit else [])
        for token in [*draft[:accepted], *others]:
            drafter.push(token)
            tokens.append(token)


def test_asking_twice_gives_the_same_draft(model):
    drafter = DraftModel(model, vocab_size=VOCAB).drafter([5, 6, 7])

    assert drafter.propose(4) == drafter.propose(6)[:4] == drafter.propose(4)


def test_padded_rows_of_the_vocabulary_are_never_proposed(model):
    draft = DraftModel(model, vocab_size=40).drafter([5, 6, 7]).propose(12)

    assert len(draft) == 12
    assert max(draft) < 40 <= max(greedy(model, [5, 6, 7], 12))


def test_nothing_is_drafted_past_the_draft_models_context_window():
    drafter = DraftModel(tiny_model("llama", attention="sdpa"), vocab_size=VOCAB).drafter([5] * 250)
    assert len(drafter.propose(20)) == 6
    for _ in range(6):
        drafter.push(5)
    assert drafter.propose(20) == []


def test_a_model_that_knows_fewer_tokens_is_refused():
    with pytest.raises(ModelUnavailable, match="fewer tokens"):
        DraftModel(tiny_model("llama", attention="sdpa"), vocab_size=VOCAB + 1)


def test_a_model_whose_state_cannot_be_taken_back_is_refused():
    config = MambaConfig(vocab_size=VOCAB, hidden_size=16, state_size=4, num_hidden_layers=1)
    with pytest.raises(ModelUnavailable, match="cannot be taken back"):
        DraftModel(MambaForCausalLM(config), vocab_size=VOCAB)


@pytest.fixture
def folder(tmp_path):
    tiny_model("llama", attention="sdpa").save_pretrained(tmp_path / "draft")
    tiny_tokenizer().save_pretrained(tmp_path / "draft")
    return tmp_path / "draft"


def test_a_draft_model_with_the_generators_vocabulary_is_loaded(folder, tmp_path):
    tiny_tokenizer(chat_template=None).save_pretrained(tmp_path / "serving")  # another template is no matter

    loaded = DraftModel.load(str(folder), serving=str(tmp_path / "serving"))

    assert loaded.vocab_size == len(tiny_tokenizer())
    assert len(loaded.drafter([5, 6, 7]).propose(3)) == 3


def test_a_draft_model_with_another_vocabulary_is_refused(folder, tmp_path):
    other = tiny_tokenizer()
    other.add_tokens(["<another>"])
    other.save_pretrained(tmp_path / "serving")
    with pytest.raises(ModelUnavailable, match="another vocabulary"):
        DraftModel.load(str(folder), serving=str(tmp_path / "serving"))


def test_a_draft_model_that_is_not_there_is_refused_without_its_path(tmp_path, folder):
    with pytest.raises(ModelUnavailable, match="not on this machine") as missing:
        DraftModel.load(str(tmp_path / "nowhere"), serving=str(folder))
    tiny_tokenizer().save_pretrained(tmp_path / "no-weights")
    with pytest.raises(ModelUnavailable, match="'no-weights' is not on this machine") as weightless:
        DraftModel.load(str(tmp_path / "no-weights"), serving=str(folder))

    assert str(tmp_path) not in str(weightless.value)
    assert "footnote models fetch" in str(missing.value)
