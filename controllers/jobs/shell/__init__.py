"""I/O of the Job controllers."""
