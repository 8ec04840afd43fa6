"""Calls to the API server: wait, leave, come back."""
