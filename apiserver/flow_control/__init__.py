"""API Priority and Fairness: limits of concurrent requests, with fair queues.

Start reading at `controller.py` (what the request chain calls), then `queue_set.py` (fair queuing, the core)
and `configuration.py` (flow schemas and priority levels as values). Design: docs/design/009-flow-control.md.
"""
