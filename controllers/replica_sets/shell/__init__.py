"""I/O of replica sets: the replica set controller."""
