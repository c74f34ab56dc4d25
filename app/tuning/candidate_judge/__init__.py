"""The judge of candidates: the first layers of the default generator, taught to tell which candidates answer."""
