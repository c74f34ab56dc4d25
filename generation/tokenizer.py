"""The serving tokenizer: text to ids without surprises, and the chat template as ids."""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generation.errors import ModelUnavailable
from generation.vocabulary import token_bytes

if TYPE_CHECKING:
    from transformers import TokenizersBackend

# For tokenizers without a chat template (base models): plain headings, as in the papers that prompt them.
# The last line is an expression because Jinja drops a template's final line break.
_FALLBACK_TEMPLATE = """\
{% for message in messages %}{{ message['role'] | capitalize }}:
{{ message['content'] }}

{% endfor %}{{ 'Assistant:\\n' }}"""

_MOST_FRAMES = 64  # one for each number of turns

_THINKING = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))


class ChatTokenizer:
    """A `ports.Tokenizer` over a transformers fast tokenizer.

    Two backends are kept. The model's own recognises special tokens and is fed nothing but the chat
    template; text goes through a copy that recognises no added token at all, so that a document
    spelling out `<|im_end|>` or `<tool_call>` cannot end its own turn. (`split_special_tokens=True`
    is not enough: it lets through control tokens not marked special, and it is a flag flipped on
    shared state at every call, so not safe with several threads.) Added tokens of whitespace
    alone, as Gemma's, are ordinary text and stay.
    """

    def __init__(self, tokenizer: "TokenizersBackend") -> None:
        from tokenizers import Tokenizer as Backend

        definition = json.loads(tokenizer.backend_tokenizer.to_str())
        definition["truncation"] = definition["padding"] = None
        self._template_backend = Backend.from_str(json.dumps(definition))
        for token in definition["added_tokens"]:
            token["special"] = token["special"] or not token["content"].isspace()
        self._text_backend = Backend.from_str(json.dumps(definition))
        self._text_backend.encode_special_tokens = True  # "as ordinary text", in this library's words
        self._tokenizer = tokenizer
        self._chat_template = _chat_template(tokenizer)
        written = lru_cache(_MOST_FRAMES)(self._written_frame)
        # a template that writes the date is rendered each time
        self._frame = self._written_frame if "strftime_now" in self._chat_template else written

    @classmethod
    def load(cls, model: str, *, local_files_only: bool = True) -> "ChatTokenizer":
        """The tokenizer in a local folder or of a Hugging Face id.

        Raises:
            ModelUnavailable: it is not there, or has no fast form (`tokenizer.json`).
        """
        from transformers import AutoTokenizer, TokenizersBackend

        name = Path(model).name if Path(model).is_dir() else model
        try:
            tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=local_files_only)
        except (OSError, ValueError) as error:
            raise ModelUnavailable(
                f"The tokenizer of {name!r} is not on this machine or cannot be read; run `footnote models fetch`."
            ) from error
        if not isinstance(tokenizer, TokenizersBackend):
            raise ModelUnavailable(
                f"The tokenizer of {name!r} has no fast form (tokenizer.json), which Footnote needs."
            )
        return cls(tokenizer)

    @property
    def eos_ids(self) -> frozenset[int]:
        """The tokenizer's own end-of-sequence id, if it has one."""
        eos = self._tokenizer.eos_token_id
        return frozenset() if eos is None else frozenset((int(eos),))

    @property
    def vocab_size(self) -> int:
        """One more than the highest id: logits from there on belong to no token."""
        return 1 + max(self._template_backend.get_vocab(with_added_tokens=True).values())

    @property
    def definition(self) -> str:
        """The tokenizer as `tokenizer.json`: its pieces, special tokens and decoder, without truncation or padding."""
        return str(self._template_backend.to_str())

    @property
    def revision(self) -> str:
        """12 hexadecimal digits that change with the tokenizer or its chat template."""
        definition = self._template_backend.to_str() + "\0" + self._chat_template
        return hashlib.sha256(definition.encode()).hexdigest()[:12]

    def encode(self, text: str) -> list[int]:
        """See `ports.Tokenizer.encode`."""
        return list(self._text_backend.encode(text, add_special_tokens=False).ids)

    def count(self, text: str) -> int:
        """See `ports.Tokenizer.count`."""
        return len(self.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """See `ports.Tokenizer.decode`."""
        return str(self._template_backend.decode(list(ids), skip_special_tokens=True))

    def piece(self, token_id: int) -> bytes:
        """See `ports.Tokenizer.piece`."""
        return (self._pieces[token_id] or b"") if 0 <= token_id < len(self._pieces) else b""

    @cached_property
    def _pieces(self) -> tuple[bytes | None, ...]:
        return token_bytes(self.definition, size=self.vocab_size, eos_ids=self.eos_ids)

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """See `ports.Tokenizer.chat_frame`.

        The template is rendered around marks and cut at them, so everything it adds (a
        default system prompt, a beginning-of-sequence token) is in the frame, once. A model that can be told not to
        think aloud is told so; where the template begins the thinking, the frame ends it.

        Raises:
            ValueError: a role is none of system, user, assistant, or the template has no place for
                these roles in this order.
        """
        if unknown := set(roles) - {"system", "user", "assistant"}:
            raise ValueError(f"roles are system, user and assistant, got {sorted(unknown)}")
        return self._frame(tuple(roles))

    def _written_frame(self, roles: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        marks = [f"footnote-mark-{number:04d}-qzx" for number in range(len(roles))]
        messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        pieces = self._render(messages, marks) or self._render(_fold_system(messages), marks)
        if pieces is None:
            raise ValueError(
                f"the model's chat template has no place for these roles in this order: {', '.join(roles)}"
            )
        return tuple(tuple(self._encode_template(piece)) for piece in pieces)

    def _render(self, messages: list[dict[str, str]], marks: list[str]) -> list[str] | None:
        """The template's own text around the marks, or None when it refuses or loses one."""
        from jinja2 import TemplateError

        try:
            text = str(
                self._tokenizer.apply_chat_template(
                    messages,
                    chat_template=self._chat_template,
                    tokenize=False,
                    add_generation_prompt=True,
                    enable_thinking=False,  # Qwen3, SmolLM3 and GLM know this word,
                    thinking=False,  # Granite and DeepSeek V3.1 this one
                )
            )
        except (TemplateError, TypeError, LookupError):  # templates refuse in many ways
            return None
        pieces = []
        for mark in marks:
            piece, found, text = text.partition(mark)
            if not found:
                return None
            pieces.append(piece)
        return [*pieces, _closed(text)]

    def _encode_template(self, text: str) -> list[int]:
        return list(self._template_backend.encode(text, add_special_tokens=False).ids)


def _closed(text: str) -> str:
    """The end of a frame, with the thinking ended that it begins (Ma et al. 2025, arXiv:2504.09858)."""
    begun = text.rstrip()
    ending = next((end for start, end in _THINKING if begun.endswith(start)), "")
    return f"{begun}\n\n{ending}\n\n" if ending else text


def _fold_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Join each system message to the user message after it, by a blank line."""
    folded: list[dict[str, str]] = []
    for message in messages:
        if folded and folded[-1]["role"] == "system" and message["role"] in ("system", "user"):
            content = f"{folded[-1]['content']}\n\n{message['content']}"
            folded[-1] = {"role": message["role"], "content": content}
        else:
            folded.append(message)
    return folded


def _chat_template(tokenizer: Any) -> str:
    if tokenizer.chat_template:
        return str(tokenizer.get_chat_template())
    # A template writes its own beginning-of-sequence token; a tokenizer that adds one shows it on empty text.
    prefix = tokenizer.decode(tokenizer.encode("", add_special_tokens=True)[:1]) if tokenizer.bos_token else ""
    return ("{{ bos_token }}" if prefix and prefix == tokenizer.bos_token else "") + _FALLBACK_TEMPLATE
