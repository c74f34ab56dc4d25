"""The generation engine: its memory, batch sizes and queue, or the remote server that generates in its place."""

from typing import Literal, Self

from pydantic import BaseModel, Field, SecretStr, model_validator


class EngineSettings(BaseModel, frozen=True):
    """Memory, batch sizes and queue of the engine, speculation, and the remote server.

    Example:
        >>> load_settings(remote_url="http://gpu:8080/v1", remote_model="m").remote_model
        "m"
    """

    remote_url: str = Field(
        default="",
        description="Base URL of an OpenAI-compatible server that generates instead of this process; "
        "generator then names its tokenizer.",
    )
    remote_model: str = Field(default="", description="The model's name on the remote server.")
    remote_api: Literal["completions", "chat"] = Field(
        default="completions",
        description="Whether the remote server is sent token ids, by the tokenizer that generator names, or messages, "
        "which need no tokenizer here.",
    )
    remote_api_key: SecretStr | None = Field(default=None, description="Key sent to the remote server.")
    context_window: int | None = Field(
        default=None, ge=256, description="Caps the model's context window, in tokens, to save memory."
    )
    max_running: int = Field(
        default=8, ge=1, le=1024, description="Sequences generated at once; 64 where a GPU of this machine generates."
    )
    step_tokens: int = Field(
        default=512,
        ge=1,
        le=1_000_000,
        description="Tokens fed to the model in one step; longer prompts are read in chunks. 2048 where a GPU of this "
        "machine generates.",
    )
    kv_cache_mb: int | None = Field(
        default=None,
        ge=1,
        description="Most memory of keys and values, in MiB; unset, half of a GPU's free memory, or on a CPU an eighth "
        "of the machine's and at most 1024 (two context windows where those take more).",
    )
    max_waiting: int = Field(
        default=64, ge=1, le=100_000, description="Most requests in the queue; further ones are refused (503)."
    )
    max_waiting_tokens: int = Field(
        default=131_072,
        ge=1,
        le=1_000_000_000,
        description="Most prompt tokens in the queue of the generator; further requests are refused (503).",
    )
    fuse: bool = Field(
        default=True,
        description="Compute a local model's layers by fewer operations, where each gives the same result when the "
        "model loads (Llama, Mistral, Qwen2, Qwen3).",
    )
    speculation: bool = Field(
        default=True,
        description="Speculative decoding: draft tokens and verify several in one step where that is faster; "
        "answers stay the same.",
    )
    draft_model: str = Field(
        default="",
        description="Smaller model with the generator's tokenizer that drafts tokens; empty drafts from the "
        "sources' text.",
    )

    @model_validator(mode="after")
    def _engine_is_consistent(self) -> Self:
        if self.remote_url and not self.remote_url.startswith(("http://", "https://")):
            raise ValueError("FOOTNOTE_REMOTE_URL must begin with http:// or https://")
        if self.remote_url and not self.remote_model:
            raise ValueError("FOOTNOTE_REMOTE_URL needs FOOTNOTE_REMOTE_MODEL")
        if not self.remote_url and (self.remote_model or self.remote_api_key is not None):
            raise ValueError("FOOTNOTE_REMOTE_MODEL and FOOTNOTE_REMOTE_API_KEY need FOOTNOTE_REMOTE_URL")
        if not self.remote_url and self.remote_api != "completions":
            raise ValueError("FOOTNOTE_REMOTE_API needs FOOTNOTE_REMOTE_URL")
        if self.draft_model and not self.speculation:
            raise ValueError("FOOTNOTE_DRAFT_MODEL needs FOOTNOTE_SPECULATION")
        if self.step_tokens < self.max_running:
            raise ValueError("FOOTNOTE_STEP_TOKENS must be at least FOOTNOTE_MAX_RUNNING")
        return self
