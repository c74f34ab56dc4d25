"""`footnote doctor`: examines an installation and reports facts and problems without names, texts or secrets."""
