"""A citation: its marker, the exact passage that it opens, and where that is."""
