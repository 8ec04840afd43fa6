"""Scenarios: a cluster, steps and expectations in a YAML file, run and checked with one command.

Start with `format/model.py` (what a scenario says), `acting/base.py` (what a verb of steps must have) and
`cluster.py` (what a cluster must offer). `play/runner.py` plays the steps against any `ScenarioCluster`;
`clusters/real_cluster.py` is one on `nominee up`. `record` makes a scenario of what a user does.
docs/scenarios.md describes the format.
"""
