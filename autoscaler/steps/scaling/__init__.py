"""Steps that add and remove nodes."""
