"""What support would ask for, without names, texts or secrets."""
