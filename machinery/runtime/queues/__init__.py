"""Queues of work and their limits, as client-go's workqueue."""
