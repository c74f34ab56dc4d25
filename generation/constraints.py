"""Constraints on the output, as state machines over token ids."""

import threading
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from generation.citation_grammar import BEGINNING, CitationGrammar, Place
from generation.errors import ConstraintInvalid
from generation.json_grammar import JsonGrammar
from generation.tokenizer import ChatTokenizer
from generation.types import CitationMarkers, Constraint, JsonSchema
from generation.vocabulary import token_bytes

if TYPE_CHECKING:
    from llguidance import LLMatcher

_IMPOSSIBLE = "The answer cannot be continued within its JSON schema."


class TokenConstraint(Protocol):
    """The state machine of one sequence. Used by one thread."""

    def mask(self) -> Tensor | None:
        """Bool [vocabulary] on the CPU, True for ids that may come next, at least one; None when all may.

        Shared and not to be written to.

        Raises:
            ConstraintInvalid: going on is impossible or beyond bounds; it stays so.
        """
        ...

    def allows(self, token_id: int) -> bool:
        """Whether `mask` is True at one id; raises what `mask` raises."""
        ...

    def advance(self, token_id: int) -> None:
        """Take the next token, which `mask` allowed.

        Raises:
            ConstraintInvalid: as `mask` does.
        """
        ...

    def clone(self) -> "TokenConstraint":
        """The same state, to look ahead from: neither moves the other."""
        ...


class ConstraintCompiler:
    """Makes state machines for the serving tokenizer.

    Safe to call from several threads. What is derived from the vocabulary is made once, when first
    needed: for a vocabulary of 50,000 about 0.1 s for citations and a second for JSON.
    """

    def __init__(self, tokenizer: ChatTokenizer, *, eos_ids: frozenset[int], vocab_size: int) -> None:
        """Bind to a tokenizer.

        Args:
            tokenizer: The serving tokenizer.
            eos_ids: Ids that end a sequence, the model's and the tokenizer's.
            vocab_size: How many logits there are: the length of every mask.
        """
        self._tokenizer = tokenizer
        self._eos_ids = eos_ids
        self._vocab_size = vocab_size
        self._lock = threading.Lock()
        self._citations: CitationGrammar | None = None
        self._json: JsonGrammar | None = None

    def compile(self, constraint: Constraint) -> TokenConstraint:
        """The state machine of a sequence that begins.

        Raises:
            ConstraintInvalid: a schema that cannot be used; the message says why.
        """
        match constraint:
            case CitationMarkers(sources):
                grammar = self._citation_grammar()
                return _CitationConstraint(grammar, sources=grammar.sources(sources))
            case JsonSchema(schema):
                json = _JsonConstraint(self._json_grammar().matcher(schema), vocab_size=self._vocab_size)
                json.mask()  # some schemas show only here that nothing satisfies them
                return json

    def _citation_grammar(self) -> CitationGrammar:
        with self._lock:
            if self._citations is None:
                self._citations = CitationGrammar(
                    token_bytes(self._tokenizer.definition, size=self._vocab_size, eos_ids=self._eos_ids)
                )
            return self._citations

    def _json_grammar(self) -> JsonGrammar:
        if not self._eos_ids:
            raise ConstraintInvalid("This model has no token that ends an answer, so it cannot be held to a schema.")
        with self._lock:
            if self._json is None:
                self._json = JsonGrammar(
                    self._tokenizer.definition,
                    eos_ids=self._eos_ids,
                    vocab_size=max(self._vocab_size, self._tokenizer.vocab_size),
                )
            return self._json


class _CitationConstraint:
    """A place in the citation grammar."""

    def __init__(self, grammar: CitationGrammar, *, sources: int, place: Place = BEGINNING) -> None:
        self._grammar = grammar
        self._sources = sources
        self._place = place

    def mask(self) -> Tensor:
        """See `TokenConstraint.mask`; never raises."""
        return self._grammar.mask(self._place, self._sources)

    def allows(self, token_id: int) -> bool:
        """See `TokenConstraint.allows`."""
        return self._grammar.advance(self._place, token_id, sources=self._sources) is not None

    def advance(self, token_id: int) -> None:
        """See `TokenConstraint.advance`."""
        place = self._grammar.advance(self._place, token_id, sources=self._sources)
        assert place is not None, "a token that the mask forbids"
        self._place = place

    def clone(self) -> "_CitationConstraint":
        """See `TokenConstraint.clone`."""
        return _CitationConstraint(self._grammar, sources=self._sources, place=self._place)


class _JsonConstraint:
    """A llguidance matcher; its mask is computed once a step."""

    def __init__(self, matcher: "LLMatcher", *, vocab_size: int, mask: Tensor | None = None) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size
        self._mask = mask

    def mask(self) -> Tensor:
        """See `TokenConstraint.mask`."""
        if self._mask is None:
            # One byte a token; a bytearray because torch asks for memory that could be written to.
            allowed = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
            mask = allowed[: self._vocab_size] != 0
            if self._matcher.is_error() or not bool(mask.any()):
                raise ConstraintInvalid(_IMPOSSIBLE)
            self._mask = mask
        return self._mask

    def allows(self, token_id: int) -> bool:
        """See `TokenConstraint.allows`."""
        return bool(self.mask()[token_id])

    def advance(self, token_id: int) -> None:
        """See `TokenConstraint.advance`."""
        self._mask = None
        if not self._matcher.consume_token(token_id):
            raise ConstraintInvalid(_IMPOSSIBLE)

    def clone(self) -> "_JsonConstraint":
        """See `TokenConstraint.clone`."""
        return _JsonConstraint(self._matcher.deep_copy(), vocab_size=self._vocab_size, mask=self._mask)
