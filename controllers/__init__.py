"""The controllers that make workloads live: volumes, workloads, budgets, nodes, garbage.

`controller` has the shape that all share (informers feed a work queue of keys, a worker reconciles one key);
Each controller is a pure core (objects in, next step out) beside its shell.
"""
