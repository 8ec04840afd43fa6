"""What objects have in common: metadata, selectors, conditions, references."""
