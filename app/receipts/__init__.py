"""Receipts: what an answer was made of and what it cost, signed, and checked without a server."""
