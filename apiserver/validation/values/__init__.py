"""Values in one field: addresses, quantities, paths."""
