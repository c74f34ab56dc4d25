"""A set's question as the application is asked it."""

from app.answering.question import Question
from app.evaluation.scratch import PRINCIPAL
from app.evaluation.types import Options, SetQuestion
from app.ids import new_id
from retrieval.types import Scope, SearchMode


def asked(
    question: SetQuestion,
    options: Options,
    *,
    collection_id: str,
    mode: SearchMode,
    top_k: int,
    document_ids: tuple[str, ...] | None = None,
) -> Question:
    """The question about a collection, or about some documents of it, by the application's ids."""
    return Question(
        request_id=new_id("req"),
        endpoint="evaluation",
        principal=PRINCIPAL,
        text=question.text,
        scope=Scope(tenant_id=PRINCIPAL.tenant_id, collection_ids=(collection_id,), document_ids=document_ids),
        top_k=top_k,
        mode=mode,
        max_context_tokens=options.context_tokens,
        max_output_tokens=options.output_tokens,
        abstention_threshold=options.abstention_threshold,
        strict=options.strict,
    )
