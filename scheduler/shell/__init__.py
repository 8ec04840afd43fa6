"""The scheduler's shell: it awaits, calls and writes, around the pure cores.

Start at `run.py` (the process) and `wiring.py` (how the parts are put together), then `scheduler.py` (the
loop) and `binding.py` (the binding cycle).
"""
