"""Retrieves passages for a question: its vector, search, the documents of its conversation first, reranking."""
