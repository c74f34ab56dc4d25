"""Measures retrieval, context and answers on question sets that users bring."""
