"""A token grammar that allows only one JSON document that satisfies a schema.

The grammar is llguidance's. This module adds bounds, so that a hostile schema costs
milliseconds a step at most, and refuses keywords that llguidance accepts without enforcing.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from generation.errors import ConstraintInvalid

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits

MAX_SCHEMA_BYTES = 32_768
# White space between JSON's tokens: enough to indent, too little to fill a whole answer.
_WHITESPACE = r"[ \n]{1,25}"
# One way to write each character, so that no key can be a second spelling of another: no \/ and no \u0061.
_ESCAPES = '"\\bfnrt'
_ESCAPED_CONTROLS = "\b\f\n\r\t"


class JsonGrammar:
    """Compiles schemas for one vocabulary. Building it takes about a second for a large one."""

    def __init__(self, definition: str, *, eos_ids: frozenset[int], vocab_size: int) -> None:
        """Read the vocabulary.

        Args:
            definition: The tokenizer as `tokenizer.json`.
            eos_ids: Ids that end a sequence, at least one.
            vocab_size: One more than the highest id of the tokenizer or the model.
        """
        from llguidance import LLTokenizer

        self._tokenizer: LLTokenizer = LLTokenizer(definition, n_vocab=vocab_size, eos_token=sorted(eos_ids))

    def matcher(self, schema: str) -> "LLMatcher":
        """The start of a document that satisfies `schema` (JSON text).

        Supported is what llguidance supports, less `minProperties` above 1 (nothing forbids a key to
        come twice) and control characters without a short escape; what is not supported is refused, not ignored.

        Raises:
            ConstraintInvalid: it is no JSON Schema, too large, unsatisfiable, or needs unsupported features.
        """
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_json_schema(
            json.dumps(_checked(schema), allow_nan=False),
            overrides={
                "item_separator": ",",
                "key_separator": ":",
                "whitespace_flexible": True,
                "whitespace_pattern": _WHITESPACE,
                "coerce_one_of": False,
                "lenient": False,
                "json_allowed_escapes": _ESCAPES,
                "json_allow_general_unicode_escapes": False,
            },
        )
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=_limits())
        if matcher.is_error():
            raise ConstraintInvalid(f"The JSON schema cannot be used: {_reason(matcher.get_error())}.")
        return matcher


def _limits() -> "LLParserLimits":
    """About 20 ms and 40 MB for the worst schema (llguidance's own bounds allow 500 MB of lexer states)."""
    from llguidance import LLParserLimits

    return LLParserLimits(max_lexer_states=20_000, max_grammar_size=100_000, verbose_errors=False)


def _reason(error: str) -> str:
    """The first line of a message, and of a quoted pattern's the line that says what is wrong with it."""
    lines = error.splitlines() or ["it is too complex"]
    details = [line.removeprefix("error:") for line in lines[1:] if line.startswith("error:")]
    return "".join([lines[0], *details])[:300].rstrip(".")


def _checked(schema: str) -> dict[str, Any] | bool:
    """The schema as an object, without llguidance's own extension.

    Raises:
        ConstraintInvalid: see `JsonGrammar.matcher`.
    """
    if len(schema.encode(errors="replace")) > MAX_SCHEMA_BYTES:
        raise ConstraintInvalid(f"The JSON schema is longer than {MAX_SCHEMA_BYTES} bytes.")
    try:
        parsed = json.loads(schema, parse_constant=_refuse_constant, parse_float=_finite)
        values = list(_values(parsed))
    except (ValueError, RecursionError) as error:
        raise ConstraintInvalid("The JSON schema is not valid JSON, or nested too deeply.") from error
    if not isinstance(parsed, dict | bool):
        raise ConstraintInvalid("A JSON schema is an object.")
    for value in values:
        if isinstance(value, str) and any(char < " " and char not in _ESCAPED_CONTROLS for char in value):
            raise ConstraintInvalid("The JSON schema cannot be used: it holds a control character.")
        if isinstance(value, dict):
            least = value.get("minProperties")
            if isinstance(least, int | float) and least > 1:
                raise ConstraintInvalid("The JSON schema cannot be used: minProperties above 1 is not supported.")
    if isinstance(parsed, dict):
        parsed.pop("x-guidance", None)
    return parsed


def _values(value: object) -> Iterator[object]:
    """Every value and key inside, the whole first."""
    yield value
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _values(item)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number beyond double precision")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
