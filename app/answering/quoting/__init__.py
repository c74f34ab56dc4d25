"""Answers by quotation: scores the sentences of the sources and renders the best ones with footnotes."""
