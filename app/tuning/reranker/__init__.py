"""Trains a reranker."""
