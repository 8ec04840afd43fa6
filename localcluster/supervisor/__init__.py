"""The supervisor of a cluster's processes: start, readiness, restart with back-off, ordered stop, no orphans.

Start with `model.states` (the states of a process as a table) and `model.core` (decisions, no I/O). `shell` is the loop
that performs them with real processes, `commands.control` the Unix socket that the other commands use. The process
uses little memory: no gRPC, no protobuf, no click, no rich.
"""
