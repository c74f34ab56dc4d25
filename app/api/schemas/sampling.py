"""Sampling parameters that `POST /v1/ask` and OpenAI's chat completions share."""

from dataclasses import replace
from typing import Any

from pydantic import Field

from app.answering.question import GREEDY
from app.api.schemas.shape import RequestBody
from generation.types import SamplingParams


class SamplingFields(RequestBody):
    """Sampling parameters, each named as its field in `SamplingParams`; null or left out takes the engine's default.

    A field added here is a parameter of both requests. A request whose default or range differs declares the field
    again; a parameter of one request alone is a field of that request, which extends `sampling_params`.

    Example:
        >>> SamplingFields(temperature=0.7, seed=1).sampling_params().temperature
        0.7
    """

    temperature: float | None = Field(
        default=None, ge=0, le=2, description="Sampling temperature; default 0: greedy and reproducible."
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Nucleus sampling: only the most probable tokens with this total probability; default 1.",
    )
    seed: int | None = Field(
        default=None, ge=-(2**63), lt=2**63, description="Seed of the sampler; makes a sampled answer reproducible."
    )

    def sampling_params(self) -> SamplingParams:
        """The engine's parameters. `max_tokens` is left to the answer's limits (`Question.sampling`)."""
        # the fields of this class alone: in a request `top_k`, for example, is the number of chunks to retrieve
        given: dict[str, Any] = {name: getattr(self, name) for name in SamplingFields.model_fields}
        return replace(GREEDY, **{name: value for name, value in given.items() if value is not None})
