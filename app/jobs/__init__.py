"""Ingestion in the background."""
