"""Tests of app.tuning.reranker."""
