"""Fits and measures the verifier of citations."""
