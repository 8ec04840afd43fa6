"""The scheduler: it chooses a node for each pending pod, and evicts pods where that is needed and allowed.

Start with `cycle` (one scheduling cycle), then `framework` (what plugins are and how they run), `queue` and
`preemption`: all pure. `group_cycle` is the cycle of a pod group, `deferred_resizes` that of a bound pod
whose resize is deferred. `shell` has the process, the binding cycle and all writes: start with `shell.run`.
"""
