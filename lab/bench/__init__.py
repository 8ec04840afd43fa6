"""Benchmarks on real processes.

Start with `command` (the options) and `scheduling` or `watch` (one run each). `workloads` has the workloads
of scheduler_perf, `objects` makes their nodes and pods, `creator` is the process that creates them, `watcher`
counts bound pods as any client sees them, `verification` checks where they are, `figures` does the
arithmetic.
"""
