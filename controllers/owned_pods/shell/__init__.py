"""I/O of controllers that own pods."""
