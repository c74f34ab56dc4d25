"""Measures how well the served language model reads, and keeps what was measured."""
