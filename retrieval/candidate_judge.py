"""The judge of candidates: the first layers of a small language model, taught to tell what answers a question.

It reads a question once and the candidates behind it side by side, each with what stands above and before it, and gives
each the log-odds that it answers. What it learnt is a change of low rank to every product (Hu et al. 2021,
arXiv:2106.09685), which is added to the weights when it is loaded.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeAlias

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from retrieval.branch_attention import IMPLEMENTATION, register
from retrieval.errors import JudgeUnavailable
from retrieval.judge_layout import JUDGE_FILES, JudgedText, JudgeInput, layout
from retrieval.plain_tokenizer import plain_tokenizer
from retrieval.weights import digest, fastest_dtype, loading, on_gpu

_HEAD = ("head.weight", "head.bias")
_UP, _DOWN = ".up", ".down"

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Dtype: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]


class LanguageModelJudge:
    """Implements `CandidateJudge`. Safe to call from several threads, which take turns."""

    def __init__(
        self, base: Any, head: tuple[Tensor, Tensor], tokenizer: Tokenizer, *, name: str, revision: str
    ) -> None:
        """Wrap a loaded model; most callers want `load`.

        Args:
            base: A transformers Llama model without a head, changed as it was trained, with the attention of
                `retrieval.branch_attention`.
            head: Weight, (1, width), and bias, (1,), of the score, in float32.
            tokenizer: The base's, without truncation.
            name: The judge's name.
            revision: Identifies its weights.
        """
        self._base = base.eval()
        self._head = head
        self._tokenizer = tokenizer
        self._name = name
        self._revision = revision
        self._lock = Lock()

    @classmethod
    def load(
        cls, folder: Path, base_folder: Path, *, name: str = "", device: Device = "auto", dtype: Dtype = "auto"
    ) -> "LanguageModelJudge":
        """Load the layers that the judge was trained on and add what it learnt.

        Args:
            folder: Has `JUDGE_FILES`.
            base_folder: The language model that the judge was trained from, as a local folder.
            name: The judge's name; its folder's name when empty.
            device: "auto" takes a GPU when there is one.
            dtype: Of the arithmetic; "auto" is half precision where the hardware multiplies it.

        Raises:
            JudgeUnavailable: The weights or the base are not there, are damaged, or do not fit together.
        """
        name = name or folder.name
        on_cuda = on_gpu(device, absent=JudgeUnavailable(f'The judge "{name}" is to run on a GPU, but there is none.'))
        chosen = getattr(torch, dtype if dtype != "auto" else fastest_dtype(on_cuda=on_cuda))
        damaged = JudgeUnavailable(
            f'The judge "{name}" cannot be loaded, its files or those of its base model are missing or damaged.'
        )
        register()
        with loading(damaged):
            revisions = f"{digest(base_folder)} {digest(folder)}"
            learnt = load_file(folder / JUDGE_FILES[0])
            head = tuple(learnt.pop(part).float() for part in _HEAD)
            layers = 1 + max(int(name.split(".")[1]) for name in learnt)
            base = first_layers(base_folder, layers, dtype=torch.float32, attention=IMPLEMENTATION)
            tokenizer = plain_tokenizer(base_folder)
            for product, change in _changes(learnt):
                base.get_parameter(f"{product}.weight").data += change
        base.requires_grad_(requires_grad=False)
        place = "cuda" if on_cuda else "cpu"
        return cls(
            base.to(place, chosen),
            (head[0].to(place), head[1].to(place)),
            tokenizer,
            name=name,
            revision=hashlib.sha256(revisions.encode()).hexdigest()[:16],
        )

    @property
    def model(self) -> str:
        """The judge's name."""
        return self._name

    @property
    def revision(self) -> str:
        """16 hex digits of the SHA-256 over the digests of the base's weights and of the trained ones."""
        return self._revision

    def count_tokens(self, question: str, candidates: Sequence[JudgedText]) -> int:
        """Tokens `judge` reads: the question's once, and those of every candidate."""
        return len(self._layout(question, candidates).ids)

    def judge(self, question: str, candidates: Sequence[JudgedText]) -> list[float]:
        """The log-odds that each candidate answers, in the order of `candidates`.

        Raises:
            JudgeUnavailable: The model gave something that is no number (half precision overflows).
        """
        laid_out = self._layout(question, candidates)
        weight, bias = self._head
        with self._lock, torch.inference_mode():
            states = self._base(
                input_ids=torch.tensor([laid_out.ids], device=weight.device),
                position_ids=torch.tensor([laid_out.positions], device=weight.device),
                attention_mask=None,
                use_cache=False,
                pack=laid_out,
            ).last_hidden_state[0]
            scores = states[laid_out.ends].float() @ weight[0] + bias
        if not bool(scores.isfinite().all()):
            raise JudgeUnavailable(f'The judge "{self._name}" gave scores that are no numbers.')
        found: list[float] = scores.tolist()
        return found

    def _layout(self, question: str, candidates: Sequence[JudgedText]) -> JudgeInput:
        return layout(self._tokenizer, question, candidates)


def first_layers(folder: Path, layers: int, *, dtype: torch.dtype, attention: str) -> Any:
    """The first layers of the Llama in `folder`, as a transformers model without a head.

    Args:
        folder: With the configuration and one file of weights.
        layers: How many.
        dtype: Of the weights.
        attention: The name under which transformers knows it.

    Raises:
        OSError, ValueError, KeyError: The files are missing or damaged, or the model has fewer layers.
    """
    from transformers import AutoConfig, LlamaModel

    config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
    if config.num_hidden_layers < layers:
        raise ValueError(f"{folder.name} has {config.num_hidden_layers} layers, {layers} are needed")
    config.num_hidden_layers = layers
    weights = {
        name.removeprefix("model."): weight
        for name, weight in load_file(folder / "model.safetensors").items()
        if name.startswith("model.") and not _is_above(name, layers)
    }
    return LlamaModel.from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype, attn_implementation=attention
    )


def _is_above(name: str, layers: int) -> bool:
    """Whether a weight of the base belongs to a layer above the first ones."""
    parts = name.split(".")
    return parts[1] == "layers" and int(parts[2]) >= layers


def _changes(learnt: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The name of each changed product, and the change of its weight in float32."""
    for name, up in learnt.items():
        if name.endswith(_UP):
            product = name.removesuffix(_UP)
            yield product, up.float() @ learnt[product + _DOWN].float()
