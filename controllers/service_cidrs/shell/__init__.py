"""I/O of service cidrs: the service CIDR controller."""
