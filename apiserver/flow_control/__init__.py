"""API Priority and Fairness: who may have how many requests under way, and who waits.

Start with `controller.py` (what the fronts call), then `queue_set.py` (fair queuing, the core) and
`configuration.py` (flow schemas and priority levels as values). Design: docs/design/009-flow-control.md.
"""
