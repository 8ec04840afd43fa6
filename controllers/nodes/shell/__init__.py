"""I/O of nodes: the node life cycle controller and the taint eviction controller."""
