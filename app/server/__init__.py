"""One running Footnote: its objects are built, models loaded and swapped, requests drained."""
