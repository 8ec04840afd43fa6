"""One scheduling attempt, and its record."""
