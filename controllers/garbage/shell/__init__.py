"""I/O of garbage: the garbage collector, the pod garbage collector and the namespace controller."""
