"""The models Footnote runs: which are the defaults, how they are fetched, where their folders lie."""
