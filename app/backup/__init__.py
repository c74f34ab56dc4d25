"""One file that holds an installation: making it beside a running server, and putting it back."""
