"""Decide which writes of pods' statuses wait and which are under way; `shell/calls/api_dispatcher.py` makes them.

`states.py` is the table of one pod's calls, `call_queue.py` drives it, `api_calls.py` is what a call writes,
and `nominations.py` keeps the nominations that the watch has not shown yet. Start with `states.py`.
"""
