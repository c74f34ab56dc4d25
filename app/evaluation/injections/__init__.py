"""Measures how often instructions hidden in documents take over an answer."""
