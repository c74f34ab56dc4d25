"""Generates an answer: the prompt, the call of the engine, and footnotes in its text."""
