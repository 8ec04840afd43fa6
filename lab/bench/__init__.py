"""Benchmarks on real processes.

Start with `scheduling` or `watches.watch` (one run each); the options are in `nominee/commands/measuring/bench.py`. `load.workloads`
has the workloads of scheduler_perf, `load.objects` makes their nodes and pods, `load.creator` is the process that
creates them, `watches.watcher` counts bound pods as any client sees them, `verification` checks where they are,
`figures` does the arithmetic.
"""
