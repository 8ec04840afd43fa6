"""Scale-up: binpacking, equivalence groups, expanders."""
