"""Validation of fields that all objects have: metadata, selectors, conditions, references."""
