"""Commands on objects."""
