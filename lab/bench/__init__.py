"""Benchmarks on real processes.

Start with `scheduling` or `watch` (one run each); the options are in `nominee/commands/bench.py`. `workloads`
has the workloads of scheduler_perf, `objects` makes their nodes and pods, `creator` is the process that
creates them, `watcher` counts bound pods as any client sees them, `verification` checks where they are,
`figures` does the arithmetic.
"""
