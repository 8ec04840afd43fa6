"""Calls to the API server: one by one, or many in a message."""
