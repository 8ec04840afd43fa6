"""The scheduling queue: which pod is tried next, and what wakes a pod that was refused.

Pure: time is an argument. Start at `scheduling_queue.py`; `backoff.py` says how long a pod waits,
`in_flight.py` keeps what happens while a pod is being tried, `hints.py` asks plugins what an event means.
"""
