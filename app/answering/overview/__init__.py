"""Answers questions about a document as a whole: which document is meant, and its title, opening and headings."""
