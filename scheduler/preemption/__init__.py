"""Preemption: which pods are evicted so that a more important one can run, and the steps that evict them.

Start with `evaluator` (`decide`: the whole decision). `eligibility`: whether the pod may preempt; `dry_runs.dry_run`:
the victims on each node; `dry_runs.column_dry_run`: on many nodes at once; `selection`: the best node; `evictions`:
the steps, as data. `victim_groups` and `chosen_victims` are for deferred resizes. The plugin is
scheduler/plugins/default_preemption.py.
"""
