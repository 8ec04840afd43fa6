"""Commands to a running supervisor."""
