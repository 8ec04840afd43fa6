"""Benchmarks on real processes. `command` has the options, `scheduling` the run, `figures` the arithmetic.

`workloads` has scheduler_perf's workloads, `objects` makes their nodes and pods, `creator` is the process
that creates them, `watcher` counts bound pods as any client would see them, `verification` says whether they
are where they must be.
"""
