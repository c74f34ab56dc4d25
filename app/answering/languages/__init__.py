"""The languages Footnote recognises and answers in: a TOML file each, and the rules that read them."""
