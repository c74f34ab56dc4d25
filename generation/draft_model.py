"""A smaller model that drafts for the served one (speculative decoding, Leviathan et al. 2023, arXiv:2211.17192)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from generation.errors import ModelUnavailable

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class DraftModel:
    """A causal language model over the served model's token ids. One thread at a time."""

    def __init__(self, model: "PreTrainedModel", *, vocab_size: int, name: str = "draft model") -> None:
        """Adopt a model that is in memory already, on its device and in its format.

        Args:
            model: The drafting model.
            vocab_size: Token ids are below it; logits from there on belong to no token.
            name: The model's name in messages.

        Raises:
            ModelUnavailable: it has no logits for some token, or keeps a state that cannot be taken
                back when a draft is rejected.
        """
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

        text = model.config.get_text_config()
        if int(text.vocab_size) < vocab_size:
            raise ModelUnavailable(f"The draft model {name!r} knows fewer tokens than the generator.")
        if any(
            type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer)
            for layer in DynamicCache(config=model.config).layers
        ):
            raise ModelUnavailable(f"The draft model {name!r} keeps a state that cannot be taken back.")
        self.model = model.eval()  # type: ignore[no-untyped-call]
        self.vocab_size = vocab_size
        self.context_window = int(getattr(text, "max_position_embeddings", 0) or 2048)

    @classmethod
    def load(
        cls,
        model: str,
        *,
        serving: str,
        device: str = "cpu",
        dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto",
        local_files_only: bool = True,
    ) -> "DraftModel":
        """Load a draft model and check that it has the generator's token ids.

        Args:
            model: A local folder or a Hugging Face id.
            serving: The generator's folder or id; both tokenizers must map the same texts to the same ids.
            device: Where to run it.
            dtype: The weights' number format; "auto" is the one they are stored in.
            local_files_only: Never reach for a model hub.

        Raises:
            ModelUnavailable: it is not on this machine, cannot be read, has another vocabulary than
                the generator, or cannot draft.
        """
        from transformers import AutoModelForCausalLM

        name = _name(model)
        vocabulary = _vocabulary(model, local_files_only=local_files_only)
        if vocabulary != _vocabulary(serving, local_files_only=local_files_only):
            raise ModelUnavailable(
                f"The draft model {name!r} has another vocabulary than the generator {_name(serving)!r}."
            )
        try:
            loaded = AutoModelForCausalLM.from_pretrained(
                model,
                dtype=dtype,
                local_files_only=local_files_only,
                adapter_kwargs={"local_files_only": local_files_only},  # transformers asks the hub for one, else
            )
        except (OSError, ValueError) as error:
            raise ModelUnavailable(
                f"The draft model {name!r} is not on this machine or cannot be read; run `footnote models fetch`."
            ) from error
        loaded = loaded.to(device)  # type: ignore[arg-type]
        return cls(loaded, vocab_size=1 + max(vocabulary.values()), name=name)

    def drafter(self, prompt: Sequence[int]) -> "ModelDrafter":
        """Drafts for one sequence; the prompt is read at the first proposal."""
        return ModelDrafter(self, prompt)


class ModelDrafter:
    """Greedy continuations of one sequence by a draft model.

    It caches its own keys and values for the sequence. Those of drafted tokens that were not accepted
    are removed at the next proposal.
    """

    def __init__(self, draft_model: DraftModel, prompt: Sequence[int]) -> None:
        from transformers import DynamicCache

        self._draft_model = draft_model
        self._tokens = list(prompt)
        self._computed: list[int] = []  # the tokens whose keys and values are cached
        self._agreed = 0  # how many of these are a prefix of the sequence
        # Without a configuration every layer keeps all positions, so any number can be taken back;
        # windows of sliding layers are in their masks.
        self._cache = DynamicCache()

    def push(self, token_id: int) -> None:
        """Take the token that was generated next; nothing is computed."""
        self._tokens.append(token_id)

    def propose(self, limit: int) -> list[int]:
        """At most `limit` tokens, each the likeliest after those before it."""
        limit = min(limit, self._draft_model.context_window - len(self._tokens))
        if limit < 1 or not self._tokens:
            return []
        self._take_back()
        draft = [self._next(self._tokens[len(self._computed) :])]
        while len(draft) < limit:
            draft.append(self._next(draft[-1:]))
        return draft

    def _take_back(self) -> None:
        """Drop the cache entries of rejected drafts, and of the last token, whose logits are needed."""
        tokens, computed = self._tokens, self._computed
        while self._agreed < min(len(computed), len(tokens)) and computed[self._agreed] == tokens[self._agreed]:
            self._agreed += 1
        self._agreed = min(self._agreed, len(tokens) - 1)
        if surplus := len(computed) - self._agreed:
            self._cache.crop(-surplus)
            del computed[self._agreed :]

    @torch.inference_mode()
    def _next(self, ids: Sequence[int]) -> int:
        model = self._draft_model.model
        logits = model(
            input_ids=torch.tensor([ids], device=model.device),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        self._computed.extend(ids)
        return int(logits[0, -1, : self._draft_model.vocab_size].argmax())


def _vocabulary(model: str, *, local_files_only: bool) -> dict[str, int]:
    from transformers import AutoTokenizer

    try:
        vocabulary = AutoTokenizer.from_pretrained(model, local_files_only=local_files_only).get_vocab()
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"The tokenizer of {_name(model)!r} is not on this machine or cannot be read; run `footnote models fetch`."
        ) from error
    return {str(token): int(index) for token, index in vocabulary.items()}


def _name(model: str) -> str:
    return Path(model).name if Path(model).is_dir() else model
