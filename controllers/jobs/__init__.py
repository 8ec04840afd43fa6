"""Jobs: pods that run to completion, each of which is counted exactly once.

Start with `sync`, one reconciliation in upstream's order, and `shell.jobs`, which performs it. `pods`,
`indexes`, `failure_policy`, `success_policy`, `backoff` and `conditions` are its rules; `expiry` is the rule
of the TTL of a finished Job.

Source: kube-controller-manager 1.36, pkg/controller/job and pkg/controller/ttlafterfinished.
"""
