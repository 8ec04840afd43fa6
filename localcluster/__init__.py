"""A cluster of processes on this machine: what it consists of, how it is started, and what keeps it running.

Start with `plan` (options in, the processes and their command lines out) and `supervisor` (keeps them
running). `etcd` and `credentials` prepare what the processes need; `own_cluster` runs a cluster for a
command.
"""
