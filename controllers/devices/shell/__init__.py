"""I/O of devices: the resource claim controller and the device taint eviction controller."""
