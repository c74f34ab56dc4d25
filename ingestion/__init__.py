"""Bytes to text with pages and offsets, to chunks, to vectors."""
