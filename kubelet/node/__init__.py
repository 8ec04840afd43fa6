"""A node: its state in the core, its Node object, its addresses and its usage. Pure; start with `state`."""
