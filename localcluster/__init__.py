"""A cluster of processes on this machine: its plan, its start, and its supervision.

Python code uses two names: `own_cluster.cluster` runs a cluster until a block ends, `cluster.RunningCluster`
operates it. Below them, `plan` makes processes and command lines of options, `supervisor` keeps
them running, and `etcd` and `credentials` prepare what they need.
"""
