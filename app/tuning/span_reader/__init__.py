"""Trains the span reader: the model that points at the words that answer a question."""
