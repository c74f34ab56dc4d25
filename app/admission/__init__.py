"""Who may come in, how much they may take, and where they wait."""
