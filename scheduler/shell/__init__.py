"""The scheduler's shell: it awaits, calls and writes, around the pure cores.

Start at `process/run.py` (the process) and `process/wiring.py` (how the parts are put together), then `loop/scheduler.py` (the
loop) and `loop/binding.py` (the binding cycle).
"""
