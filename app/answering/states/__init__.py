"""The states of an answer on its way, and the port of what answers."""
