"""Writes: create, update, patch and apply."""
