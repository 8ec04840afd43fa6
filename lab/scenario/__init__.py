"""Scenarios: a cluster, steps and expectations in a YAML file, run and checked with one command.

Start with `model.py` (what a scenario says) and `cluster.py` (what a cluster must offer). `runner.py`
plays the steps against any `ScenarioCluster`; `real_cluster.py` is one on `nominee up`. docs/scenarios.md
describes the format.
"""
