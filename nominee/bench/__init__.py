"""Benchmarks on real processes. `command` has the options, `scheduling` the run, `figures` the arithmetic.

`objects` makes the nodes and pods of scheduler_perf's SchedulingBasic, `creator` is the process that creates
them, `watcher` counts bound pods as any client would see them.
"""
