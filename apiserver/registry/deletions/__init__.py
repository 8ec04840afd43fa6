"""Deletions: of an object, a collection, a namespace."""
