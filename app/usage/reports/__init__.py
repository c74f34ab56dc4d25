"""Reports and exports of token usage and cost."""
