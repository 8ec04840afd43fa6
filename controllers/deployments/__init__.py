"""Deployments: the rollout of a template over replica sets.

Start with `rollout`, which decides what to write; `sizes` has the arithmetic, `sets` what a replica set's
annotations and labels say, `progress` the conditions. `shell` has the controller.

Source: kube-controller-manager 1.36, pkg/controller/deployment.
"""
