"""The scheduler: it chooses a node for each pending pod, and evicts pods where that is needed and allowed.

Start with `attempts` (the scheduling cycles of pods, groups and resizes), then `framework` (what plugins are
and how they run), `queue`, `preemption` and `dispatch` (which writes of statuses wait): all pure. `shell` has
the process, the binding cycle and all I/O: start with `shell.process.run`.
"""
