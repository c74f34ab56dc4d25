"""Which questions quotes can answer."""

from app.answering.formats.answer_formats import ANSWER_SCHEMA, ANY_OBJECT, SCHEMA_FIELDS
from app.answering.question import Question
from app.errors import InvalidRequest, UnsupportedParameter


def require_quotable(question: Question) -> None:
    """Check that quotes can be the answer to a question, before anything is spent.

    Raises:
        InvalidRequest: It needs an answer without sources, or a JSON document that quotes cannot fill.
        UnsupportedParameter: It needs log probabilities.
    """
    if question.on_no_evidence == "answer":
        raise InvalidRequest(
            "on_no_evidence: this server has no language model and answers from documents alone; use refuse.",
            param="on_no_evidence",
        )
    if question.sampling.logprobs is not None:
        field = "include" if question.endpoint == "responses" else "logprobs"
        raise UnsupportedParameter(
            f"{field}: this server has no language model, and quotes have no probabilities.",
            param=field,
        )
    if question.json_schema not in {None, ANSWER_SCHEMA, ANY_OBJECT}:
        raise InvalidRequest(
            "This server has no language model and cannot fill a JSON schema; leave it out to get the answer "
            "and the numbers of its sources.",
            param=SCHEMA_FIELDS.get(question.endpoint),
        )
