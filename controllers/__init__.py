"""The controllers of kube-controller-manager for volumes, workloads, nodes, Services and garbage.

Each package is a subject. Its modules are the core: functions from objects to writes, without I/O and clock.
`<subject>/shell/` has one module a controller, which watches, asks the core, and writes. `shell/` has what
all share: start with `shell.manager` (which controllers there are) and `shell.controller` (how one works).
"""
