"""Training of the small models retrieval ships. Run by hand; nothing that serves imports it."""
