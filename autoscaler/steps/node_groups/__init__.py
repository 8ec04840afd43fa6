"""Steps that mend node groups: sizes, nodes with errors, late requests."""
