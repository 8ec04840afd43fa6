"""Tools that watch, disturb and measure clusters: histories, scenarios, chaos, skew, studies, benchmarks.

Each package has a command in `nominee/commands/`. `scenario` is the base of `chaos` and `skew`; `history`
has the writes of a cluster and the invariants on them.
"""
