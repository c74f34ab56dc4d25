"""Whether an answer's sentences are supported by the passages they cite."""
