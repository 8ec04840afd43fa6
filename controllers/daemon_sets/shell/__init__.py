"""I/O of daemon sets: the daemon set controller."""
