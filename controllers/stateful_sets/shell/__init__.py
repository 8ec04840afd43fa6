"""I/O of stateful sets: the stateful set controller."""
