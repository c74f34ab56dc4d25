"""Answers by quotes: scores the sentences of the sources, selects the best ones and writes them with footnotes."""
