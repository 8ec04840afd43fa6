"""Keeps a cluster's processes running: start, readiness, restart with back-off, ordered stop, no orphans.

Start with `states` (the life of a process as a table) and `core` (decisions, no I/O); `shell` is the loop
that performs them with real processes, `control` the unix socket that the other commands talk to.
The process stays light: no gRPC, no protobuf, no click, no rich.
"""
