"""Turns files into text with pages and offsets, chunks and vectors."""
