"""State of the node groups: backoff, requests under way, status."""
