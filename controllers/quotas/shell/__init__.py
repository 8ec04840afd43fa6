"""I/O of quotas: the resource quota controller."""
