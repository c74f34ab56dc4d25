"""The errors of retrieval."""


class RetrievalError(Exception):
    """The base of retrieval's errors. The message may be shown to a caller."""


class InvalidFilter(RetrievalError):
    """A metadata filter is malformed or uses an unknown operator."""


class IndexCorrupt(RetrievalError):
    """A saved index does not match its manifest; it must be rebuilt, never loaded."""


class IndexDeviceUnavailable(RetrievalError):
    """The vector index is to run on a device that is not there."""


class EmbedderUnavailable(RetrievalError):
    """The embedding model is missing or cannot be loaded."""


class RerankerUnavailable(RetrievalError):
    """The reranking model is missing, cannot be loaded, or is no reranker."""


class VerifierUnavailable(RetrievalError):
    """The verifying model is missing, cannot be loaded, or judges no pairs."""


class ReaderUnavailable(RetrievalError):
    """The span reader is missing, cannot be loaded, or does not fit the model it was trained on."""


class JudgeUnavailable(RetrievalError):
    """The judge of candidates is missing, cannot be loaded, or does not fit the model it was trained on."""
