"""What is asked, and within which limits."""

from dataclasses import dataclass
from typing import Literal

from app.prompt import Message
from app.types import Principal
from retrieval.types import Scope, SearchMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Defaults: tokens of context and output, the least cosine that counts as evidence, the longest waiting line."""

    max_context_tokens: int
    max_output_tokens: int
    min_evidence: float
    max_waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, by whom, of which documents, and how the answer is to be generated.

    `rerank` None reranks where there is a reranker. `json_schema` (JSON text) asks for one JSON document
    that satisfies it, instead of prose with footnotes.
    """

    request_id: str
    endpoint: str
    principal: Principal
    text: str
    scope: Scope
    top_k: int = 8
    mode: SearchMode = SearchMode.HYBRID
    rerank: bool | None = None
    max_context_tokens: int | None = None
    max_output_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    sampling_top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    history: tuple[Message, ...] = ()
    instructions: str = ""
    on_no_evidence: Literal["refuse", "answer"] = "refuse"
    dry_run: bool = False
    json_schema: str | None = None
