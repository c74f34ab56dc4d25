"""Scores how well a cited passage supports the sentence that cites it."""
