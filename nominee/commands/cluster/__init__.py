"""Commands on a cluster as a whole."""
