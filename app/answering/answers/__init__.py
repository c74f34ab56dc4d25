"""An answer: its text and the parts of it, its footnotes, sources and usage, and the events by which it comes."""
