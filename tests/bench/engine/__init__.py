"""Benchmark of the engine."""
