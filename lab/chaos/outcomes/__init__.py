"""The outcome of a scenario: the facts of its objects, to be compared with recorded ones."""
