"""The scheduling queue: which pod is tried next, and which events move a rejected pod.

Pure: time is an argument. Start at `scheduling_queue.py`; `backoff.py` has the backoff times,
`in_flight.py` the events since a pod was popped, `hints.py` the registered events and their queueing hints.
"""
