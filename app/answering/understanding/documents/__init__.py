"""Recognises questions about a document as a whole, and which document they mean."""
