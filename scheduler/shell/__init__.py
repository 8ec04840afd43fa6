"""The scheduler's outside: what awaits, calls and writes, around the pure cores.

Start at `run.py` (how the parts are put together), then `scheduler.py` (the loop) and `binding.py` (what
happens to a pod once it has a node).
"""
