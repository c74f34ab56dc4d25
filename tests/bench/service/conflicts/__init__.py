"""How often sources that disagree are told, and how often ones that do not: planted pairs and ordinary questions."""
