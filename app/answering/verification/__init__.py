"""Scores whether a cited passage supports the sentence that cites it."""
